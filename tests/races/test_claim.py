"""Two that want the same pending job: one gets it, the other learns of it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from django_helisched.jobs.job import State
from django_helisched.models import JobArgs
from django_helisched.stores.base import TURNS_BY_AGE
from django_helisched.stores.orm import OrmJobStore
from django_helisched.testing.contract import START
from django_helisched.testing.contract.factories import LEASE, SECOND, enqueued, outcomes, read, state_of
from tests.contract.slow_listings import slow_marks
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django_helisched.jobs.job import ClaimedJob
    from django_helisched.testing.clock import ManualClock
    from tests.races.stage import Stage


def claiming(store: OrmJobStore, worker: str, *, limit: int = 64, turn: int = 0) -> Callable[[], list[ClaimedJob]]:
    return lambda: store.claim(worker_id=worker, limit=limit, lease=LEASE, turn=turn)


def ids(claims: list[ClaimedJob]) -> list[UUID]:
    return [claim.id for claim in claims]


@pytest.mark.parametrize("turn", [0, TURNS_BY_AGE - 1], ids=["by priority", "by age"])
def test_of_two_claims_that_saw_the_same_job_one_takes_it(stage: Stage, store, turn):
    job = enqueued(store)
    first = stage.about_to_write(claiming(store, "first", turn=turn))
    second = stage.about_to_write(claiming(store, "second", turn=turn))
    assert ids(first.finish()) == [job.id]
    assert ids(second.finish()) == []
    row = read(store, job.id)
    assert (row.lease_holder, row.fence) == ("first", 1)


@pytest.mark.parametrize("turn", [0, TURNS_BY_AGE - 1], ids=["by priority", "by age"])
def test_two_claims_at_once_take_each_job_once(stage: Stage, store, turn):
    jobs = [enqueued(store) for _ in range(40)]
    actors = [stage.about_to_write(claiming(store, name, turn=turn)) for name in ("first", "second")]
    for actor in actors:
        actor.go_on()
    taken = [job_id for actor in actors for job_id in ids(actor.result())]
    assert sorted(taken) == [job.id for job in jobs]
    assert {read(store, job.id).fence for job in jobs} == {1}


def test_two_claims_that_begin_where_an_old_listing_ended_take_each_job_once(stage: Stage, clock: ManualClock):
    store = OrmJobStore("default", clock, marks=slow_marks(clock))
    jobs = [enqueued(store) for _ in range(40)]
    assert ids(claiming(store, "nobody", limit=1)()) == [jobs.pop(0).id]
    actors = [stage.about_to_write(claiming(store, name, limit=30)) for name in ("first", "second")]
    for actor in actors:
        actor.go_on()
    taken = [job_id for actor in actors for job_id in ids(actor.result())]
    assert sorted(taken) == [job.id for job in jobs]
    assert {read(store, job.id).fence for job in jobs} == {1}


def test_a_job_that_is_given_back_below_the_mark_is_taken_before_the_others(stage: Stage, clock: ManualClock):
    marks = slow_marks(clock)
    store = OrmJobStore("default", clock, marks=marks)
    first, second, third = (enqueued(store, due_at=START + number * SECOND) for number in range(3))
    clock.advance(3 * SECOND)
    [claim] = claiming(store, "first", limit=1)()
    marks.forget()
    begun = stage.about_to_write(claiming(store, "second", limit=1))
    store.release([claim])
    # Only where rows are locked does a claim begin at a mark.
    in_order = [first, second, third] if has_one_writer() else [second, first, third]
    assert ids(begun.finish()) == [in_order[0].id]
    assert ids(claiming(store, "third", limit=1)()) == [in_order[1].id]
    assert ids(claiming(store, "third", limit=1)()) == [third.id]


def test_a_claim_passes_over_what_another_is_taking(stage: Stage, store):
    jobs = [enqueued(store) for _ in range(3)]
    first = stage.holds_open(claiming(store, "first", limit=2))
    second = stage.enter(claiming(store, "second"))
    if has_one_writer():
        second.waits()
        first.go_on()
    assert ids(second.result()) == [jobs[2].id]
    assert ids(first.finish()) == [jobs[0].id, jobs[1].id]


def test_what_an_undone_claim_had_taken_is_there_for_the_next(stage: Stage, store):
    job = enqueued(store)
    first = stage.holds_open(claiming(store, "first"))
    second = stage.enter(claiming(store, "second"))
    if has_one_writer():
        second.waits()
        first.break_off()
        assert ids(second.result()) == [job.id]
        return
    assert second.result() == []
    first.break_off()
    assert ids(claiming(store, "third")()) == [job.id]
    assert read(store, job.id).fence == 1


def test_a_job_that_is_canceled_after_a_claim_saw_it_is_not_taken(stage: Stage, store):
    job = enqueued(store)
    claim = stage.about_to_write(claiming(store, "worker"))
    assert store.cancel(job.id)
    assert claim.finish() == []
    row = read(store, job.id)
    assert (row.state, row.fence, row.started_at) == (State.CANCELED, 0, None)


def test_a_cancel_waits_for_a_claim_and_asks_the_job_to_stop(stage: Stage, store):
    job = enqueued(store)
    claim = stage.holds_open(claiming(store, "worker"))
    cancel = stage.enter(lambda: store.cancel(job.id)).waits()
    [taken] = claim.finish()
    assert cancel.result() is True
    row = read(store, job.id)
    assert (row.state, row.lease_holder) == (State.IN_PROGRESS, "worker")
    assert store.heartbeat([taken], lease=LEASE).cancel_requested == {job.id}


def test_a_claim_passes_over_a_job_that_is_being_canceled(stage: Stage, store):
    job = enqueued(store)
    cancel = stage.holds_open(lambda: store.cancel(job.id))
    claim = stage.enter(claiming(store, "worker"))
    if has_one_writer():
        claim.waits()
        cancel.go_on()
    assert claim.result() == []
    assert cancel.finish() is True
    assert state_of(store, job.id) == State.CANCELED
    assert outcomes(store, job.id) == []


def test_a_job_whose_cancel_is_undone_can_be_claimed(stage: Stage, store):
    job = enqueued(store)
    stage.holds_open(lambda: store.cancel(job.id)).break_off()
    assert ids(claiming(store, "worker")()) == [job.id]


def test_a_job_that_expires_after_a_claim_saw_it_is_not_taken(stage: Stage, store, clock):
    job = enqueued(store, expires_at=clock.now())
    claim = stage.about_to_write(claiming(store, "worker"))
    clock.advance(1)
    assert store.expire(unknown_grace=LEASE) == 1
    assert claim.finish() == []
    assert state_of(store, job.id) == State.FAILED


def test_a_released_job_goes_to_one_of_two_claims(stage: Stage, store):
    enqueued(store)
    [taken] = claiming(store, "worker")()
    release = stage.holds_open(lambda: store.release([taken]))
    second = stage.enter(claiming(store, "second"))
    if has_one_writer():
        release.go_on()
    second.result()
    assert release.finish() == 1
    third = claiming(store, "third")()
    assert ids(second.result() + third) == [taken.id]
    assert read(store, taken.id).fence == 2


@pytest.mark.only_on("sqlite", why="elsewhere each job's arguments are a text by themselves")
def test_arguments_that_are_too_long_for_one_text_are_claimed_all_the_same(store):
    jobs = [enqueued(store, args=[number, "x" * 9_000]) for number in range(3)]
    before = connection.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 20_000)  # a gigabyte, elsewhere
    try:
        claims = claiming(store, "w")()
    finally:
        connection.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)
    assert [(claim.id, list(claim.args)) for claim in claims] == [
        (job.id, [number, "x" * 9_000]) for number, job in enumerate(jobs)
    ]


@pytest.mark.only_on("sqlite", why="others do not look into a text")
def test_what_sqlite_itself_does_not_take_for_json_keeps_no_job_from_being_claimed(store):
    jobs = [enqueued(store, args=[number]) for number in range(3)]
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {JobArgs._meta.db_table} SET args = '[NaN]' WHERE job_id = %s", [jobs[1].id.hex])
    assert ids(claiming(store, "w")()) == [job.id for job in jobs]
