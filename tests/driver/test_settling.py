"""The end of an attempt is written, whatever stands in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import DataError, OperationalError

from django_helisched.driver import patience
from django_helisched.driver.events import What
from django_helisched.jobs.job import State
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from django_helisched.driver import Driver


def test_an_outcome_is_written_once_the_database_answers_again(driver: Driver, store, jobs):
    job = bodies.tell.enqueue("a")
    store.fail("settle", OperationalError("gone"), OperationalError("gone"))
    driver.tick()
    assert bodies.seen == ["a"]
    assert jobs.get(job.id).state == State.SUCCESS
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["success"]


def test_a_report_that_the_database_refuses_is_replaced_by_a_plain_one(driver: Driver, store, jobs):
    job = bodies.fail_until.using(max_failures=1, on_complete=bodies.told).enqueue(2)
    store.fail("settle", DataError("too long"))
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.failure_reason) == (State.FAILED, "exhausted")
    assert row.last_error == "what this attempt left could not be stored (DataError)"
    driver.tick()
    assert bodies.seen == [(None, "failed")]


def test_an_end_that_cannot_be_written_at_all_leaves_the_lease_to_lapse(driver: Driver, store, jobs, events):
    job = bodies.tell.enqueue("a")
    other = bodies.tell.enqueue("b")
    store.fail("settle", DataError("no"), DataError("no again"))
    driver.tick()
    assert jobs.get(job.id).state == State.IN_PROGRESS
    assert jobs.get(other.id).state == State.SUCCESS
    assert len(events.of(What.JOB_UNSETTLED)) == 1
    assert driver.in_flight == 0


def test_patience_ends_when_the_claim_is_lost(driver: Driver, store, events):
    bodies.tell.enqueue("a")
    store.fail("settle", *[OperationalError("gone")] * 3)

    def lose(event: Any) -> None:
        events.append(event)
        if event.what is What.JOB_STARTED:
            driver._held.all()[0].tell_lost()

    driver._announce._observe = lose
    driver.tick()
    assert store.calls.count("settle") == 1
    assert "job.unsettled" in events.whats()


def test_a_mutation_whose_transaction_cannot_begin_has_not_failed(driver: Driver, store, jobs):
    job = bodies.note.enqueue("a")
    store.fail("atomic", OperationalError("gone"))
    driver.tick()
    assert bodies.seen == ["a"]
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["success"]


def test_a_deadlock_runs_the_whole_mutation_once_more_under_the_same_claim(driver: Driver, store, jobs):
    job = bodies.note.enqueue("a")
    deadlock = OperationalError("deadlock")
    jobs.is_transient = lambda error: error is deadlock
    store.fail("settle", deadlock)
    driver.tick()
    assert bodies.seen == ["a", "a"]
    row = jobs.get(job.id)
    assert (row.state, row.attempts, row.fence) == (State.SUCCESS, 0, 1)
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["success"]


def test_a_second_deadlock_is_a_failure(driver: Driver, store, jobs):
    job = bodies.note.enqueue("a")
    jobs.is_transient = lambda error: isinstance(error, OperationalError)
    store.fail("settle", OperationalError("deadlock"), OperationalError("deadlock"))
    driver.tick()
    assert bodies.seen == ["a", "a"]
    row = jobs.get(job.id)
    assert (row.state, row.attempts) == (State.PENDING, 1)


def test_a_claim_lost_before_an_at_most_once_body_began_never_begins_it(driver: Driver, store, jobs, events):
    bodies.once.enqueue("a")
    jobs.start = lambda claim: False
    driver.tick()
    assert bodies.seen == []
    assert "job.lost" in events.whats()


@pytest.mark.parametrize(
    ("error", "is_outage"), [(OperationalError("x"), True), (DataError("x"), False), (ValueError("x"), False)]
)
def test_only_a_database_that_does_not_answer_is_an_outage(error, is_outage):
    assert patience.is_outage(error) is is_outage
