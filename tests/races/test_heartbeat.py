"""Heartbeats of a batch while one of its mutations has its transaction open."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.jobs.job import State
from django_helisched.models import Job, Worker
from django_helisched.stores.base import SettleAnswer, WorkerReport
from django_helisched.testing.contract.factories import LEASE, loss, outcomes, read, running, settled, success
from tests.app.jobs import note
from tests.app.models import Receipt
from tests.races.bodies import write_and_enqueue, write_receipt
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from django_helisched.stores.orm import OrmCronStore, OrmJobStore
    from tests.races.stage import Stage


@pytest.fixture
def driver(store: OrmJobStore, crons: OrmCronStore) -> Driver:
    return Driver(store, crons, DriverConfig(worker_id="driver", lease=LEASE), seats=InlineSeats(2))


def a_foreign_key_locks_the_row() -> bool:
    """Tell whether an uncommitted row that points at a job keeps others from writing the job's row.

    Not where the key is checked at the commit, as Django has it on PostgreSQL.
    """
    return not connection.features.can_defer_constraint_checks


def test_a_mutation_that_enqueues_children_holds_up_no_heartbeat_of_its_batch(stage: Stage, driver, store, clock):
    jobs = [write_and_enqueue.enqueue("m").pk, note.enqueue("other").pk]
    tick = stage.enter(driver.tick).stands()
    clock.advance(LEASE / 2)
    beat = stage.enter(driver.beat)
    if has_one_writer():
        # The write lock is the mutation's; the beat has patience, and so has every sweep.
        beat.waits()
        tick.finish()
        beat.result()
    else:
        beat.result()
        assert [read(store, job_id).lease_expires_at for job_id in jobs] == [clock.now() + LEASE] * 2
        tick.finish()
    assert [outcomes(store, job_id) for job_id in jobs] == [[(1, "success")]] * 2


def test_a_foreign_key_to_the_job_holds_up_no_heartbeat_either(stage: Stage, driver, store, clock):
    mine, other = write_receipt.enqueue("m").pk, note.enqueue("other").pk
    tick = stage.enter(driver.tick).stands()
    lapses_at = read(store, mine).lease_expires_at
    clock.advance(LEASE / 2)
    beat = stage.enter(driver.beat)
    if has_one_writer():
        beat.waits()
        tick.finish()
        beat.result()
    else:
        beat.result()
        # A row that its own transaction has locked is passed over; nobody else can take it either.
        renewed = lapses_at if a_foreign_key_locks_the_row() else clock.now() + LEASE
        assert read(store, mine).lease_expires_at == renewed
        assert read(store, other).lease_expires_at == clock.now() + LEASE
        tick.finish()
    assert [outcomes(store, job_id) for job_id in (mine, other)] == [[(1, "success")]] * 2
    assert Receipt.objects.get().job_id == mine


def test_a_lease_that_a_foreign_key_kept_from_being_renewed_is_swept_by_nobody(stage: Stage, driver, store, clock):
    job = write_receipt.enqueue("m").pk
    tick = stage.enter(driver.tick).stands()
    if has_one_writer():
        sweep = stage.enter(lambda: store.sweep({}, lease=LEASE, decide_loss=loss))
        assert sweep.result().swept == ()
        tick.finish()
        assert outcomes(store, job) == [(1, "success")]
        return
    for _ in range(4):
        clock.advance(LEASE)
        driver.beat()
        assert store.sweep({}, lease=LEASE, decide_loss=loss).swept == ()
    tick.finish()
    assert (read(store, job).state, outcomes(store, job)) == (State.SUCCESS, [(1, "success")])


def test_a_beat_that_meets_another_beat_renews_what_is_free(stage: Stage, store, clock):
    claims = [running(store) for _ in range(2)]
    first = stage.holds_open(lambda: store.heartbeat(claims[:1], lease=LEASE))
    clock.advance(1)
    second = stage.enter(lambda: store.heartbeat(claims, lease=LEASE))
    if has_one_writer():
        second.waits()
        first.go_on()
    answer = second.result()
    assert (answer.lost, answer.cancel_requested) == (frozenset(), frozenset())
    first.finish()
    assert read(store, claims[1].id).lease_expires_at == clock.now() + LEASE


def test_a_settlement_is_done_beside_an_uncommitted_row_that_points_at_its_job(stage: Stage, store):
    claim = running(store, idempotency_key="k", unique_until="terminal")
    receipt = stage.holds_open(lambda: Receipt.objects.create(job_id=claim.id))
    settle = stage.enter(lambda: settled(store, claim, success()))
    if has_one_writer() or a_foreign_key_locks_the_row():
        settle.waits()
        receipt.go_on()
    assert settle.result() is SettleAnswer.DONE
    receipt.finish()
    assert outcomes(store, claim.id) == [(1, "success")]


def test_a_heartbeat_writes_the_lease_alone(stage: Stage, store, clock):
    claim = running(store)
    cancel = stage.holds_open(lambda: store.cancel(claim.id))
    beat = stage.enter(lambda: store.heartbeat([claim], lease=LEASE))
    clock.advance(1)
    if has_one_writer():
        beat.waits()
        cancel.go_on()
    beat.result()
    cancel.finish()
    assert Job.objects.get(pk=claim.id).cancel_requested_at is not None
    assert store.heartbeat([claim], lease=LEASE).cancel_requested == {claim.id}


def is_insert_to_come(sql: str) -> bool:
    return re.match(r"\s*(BEGIN IMMEDIATE|INSERT)", sql) is not None


def test_two_first_reports_of_a_worker_are_one_row(stage: Stage, store, clock):
    report = WorkerReport(id="new", started_at=clock.now())
    # It has found no row yet, and is about to insert one: in a transaction before Django 6.0, and without one since.
    boot = stage.enter(lambda: store.report_worker(report), stop=is_insert_to_come).stands()
    store.report_worker(report)
    boot.finish()
    assert Worker.objects.filter(pk="new").count() == 1
