"""Jobs that take longer than they may."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched.jobs.job import State
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.functions import JobFunction
    from django_helisched.stores.memory import MemoryJobStore

QUICK = timedelta(seconds=0.02)


def enqueued(jobs: MemoryJobStore, function: JobFunction[Any, Any], **columns: Any) -> Any:
    """Enqueue a job and give its row what no option sets."""
    row = jobs.get(function.enqueue().id)
    assert row is not None
    jobs.rows.tables.put(replace(row, **columns))
    return row


@pytest.mark.parametrize("body", [bodies.spin, bodies.spin_async], ids=["plain", "async"])
def test_a_body_is_stopped_at_its_timeout_and_tried_again(driver: Driver, jobs, body):
    job = enqueued(jobs, body, timeout=QUICK)
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.attempts) == (State.PENDING, 1)
    (attempt,) = jobs.attempts_of(job.id)
    assert attempt.outcome == "timeout"
    assert attempt.error == f"#{job.id.hex[-8:]} stopped after 0.02 s (timeout). Raise timeout= or split the work."
    assert "tests/app/jobs.py" in attempt.traceback


def test_the_last_timeout_fails_the_job_for_that_reason(driver: Driver, jobs):
    job = enqueued(jobs, bodies.spin, timeout=QUICK, max_failures=1)
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.failure_reason) == (State.FAILED, "timeout")


def test_after_a_timeout_the_seat_runs_the_next_job(driver: Driver, jobs):
    enqueued(jobs, bodies.spin, timeout=QUICK)
    other = bodies.note.enqueue("other")
    driver.tick()
    assert jobs.get(other.id).state == State.SUCCESS


def test_a_body_within_its_timeout_knows_how_long_it_has(driver: Driver, jobs):
    enqueued(jobs, bodies.keep_context, timeout=timedelta(seconds=90))
    driver.tick()
    (context,) = bodies.seen
    context.control.ended = False
    assert timedelta(0) < context.remaining() <= timedelta(seconds=90)
