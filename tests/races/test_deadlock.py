"""Two transactions in each other's way: whoever the database undoes does all of it once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.jobs.job import State
from django_helisched.stores.base import QueueFilter
from django_helisched.testing.contract.factories import LEASE, outcomes, read, state_of
from tests.app.models import Ledger, Receipt
from tests.races import bodies
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.models import Job
    from django_helisched.stores.orm import OrmCronStore, OrmJobStore
    from tests.races.stage import Actor, Stage


@pytest.fixture
def ticking(stage: Stage, store: OrmJobStore, crons: OrmCronStore) -> Callable[[str], Actor[Any]]:
    """Let a driver that serves one queue do one pass."""

    def tick(queue: str) -> Actor[Any]:
        config = DriverConfig(worker_id=queue, lease=LEASE, queues=QueueFilter(include=(queue,)))
        return stage.enter(Driver(store, crons, config, seats=InlineSeats(1)).tick)

    return tick


def crossing(body: Any) -> list[Job]:
    """Enqueue two jobs, in queues of their own, that lock two rows in opposite orders."""
    one, other = (Ledger.objects.create(marker=name).pk for name in ("one", "other"))
    return [body.using(queue="a").enqueue(one, other, "a"), body.using(queue="b").enqueue(other, one, "b")]


@pytest.mark.parametrize("body", [bodies.cross, bodies.cross_and_catch], ids=["raised", "caught by the body"])
def test_a_deadlock_runs_the_whole_mutation_once_more_under_its_claim(store, ticking, body):
    jobs = crossing(body)
    first = ticking("a").stands()
    second = ticking("b")
    if has_one_writer():
        # There is nothing to cross: the second begins when the first has ended.
        second.waits()
    else:
        second.stands()
        second.go_on()
        second.waits()
    first.go_on()
    second.go_on()
    first.result()
    second.result()

    assert len(bodies.runs) == (2 if has_one_writer() else 3)
    for job, mark in zip(jobs, "ab", strict=True):
        row = read(store, job.pk)
        assert (row.state, row.attempts, row.losses, row.fence) == (State.SUCCESS, 0, 0, 1)
        assert outcomes(store, job.pk) == [(1, "success")]
        assert Ledger.objects.filter(marker__in=[f"{mark} begins", f"{mark} ends"]).count() == 2


def test_a_serialization_failure_runs_the_whole_mutation_once_more(stage, store, ticking):
    number = Ledger.objects.create(marker="0").pk
    job = bodies.count_up.using(queue="a").enqueue(number)
    tick = ticking("a").stands()
    rival = stage.enter(lambda: Ledger.objects.filter(pk=number).update(marker="10"))
    if has_one_writer():
        rival.waits()
        tick.finish()
        rival.result()
        counted, runs = "10", 1
    else:
        rival.result()
        tick.finish()
        # Only PostgreSQL lets a body ask for isolation; the others read what was committed meanwhile, or lose it.
        counted, runs = ("11", 2) if bodies.can_isolate() else ("1", 1)
    assert (Ledger.objects.get().marker, len(bodies.runs)) == (counted, runs)
    row = read(store, job.pk)
    assert (row.state, row.attempts, row.fence) == (State.SUCCESS, 0, 1)


@pytest.mark.parametrize("verb", ["cancel", "force"])
def test_an_operator_who_meets_a_mutation_that_points_at_its_own_job_gets_an_answer(stage, store, ticking, verb):
    """Where the foreign key locks the job's row, the settlement and the cancel deadlock."""
    job = bodies.write_receipt.using(queue="a").enqueue("m").pk
    tick = ticking("a").stands()
    cancel = stage.enter(lambda: store.cancel(job, force=verb == "force"))
    if has_one_writer() or not connection.features.can_defer_constraint_checks:
        cancel.waits()
    tick.finish()
    answer = cancel.result()
    state = state_of(store, job)
    assert state == (State.CANCELED if answer else State.SUCCESS)
    assert Receipt.objects.count() == Ledger.objects.count() == (0 if answer else 1)
    assert len(store.attempts_of(job)) == 1
