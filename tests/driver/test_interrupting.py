"""A cancel raises an exception in the body of a function that asked for it."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched import action, scheduler
from django_helisched.driver import ThreadSeats
from django_helisched.driver.events import What
from django_helisched.exceptions import InvalidOption
from django_helisched.jobs.job import State
from tests.app import jobs as bodies
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.driver import Driver


@pytest.fixture
def running(make_driver: Callable[..., Driver]) -> Driver:
    bodies.gates["g"] = threading.Event()
    return make_driver(seats=ThreadSeats(2), threads=2, timeout_grace=timedelta(seconds=0.05))


def outcomes(jobs: Any, job: Any) -> list[str]:
    return [attempt.outcome for attempt in jobs.attempts_of(job.id)]


def start(driver: Driver, job: Any, mark: str = "spins") -> None:
    driver.tick()
    wait_for(lambda: mark in bodies.seen)


def test_a_cancel_ends_an_interruptible_body_with_the_next_beat(running: Driver, jobs, events):
    job = bodies.spin_interruptible.using(on_complete=bodies.told).enqueue()
    start(running, job)
    assert scheduler.cancel(job)
    running.beat()
    wait_for(lambda: running.in_flight == 0)
    assert jobs.get(job.id).state == State.CANCELED
    assert outcomes(jobs, job) == ["canceled"]
    assert jobs.attempts_of(job.id)[0].error_class == "django_helisched.driver.deadline.Interrupted"
    assert "cleaned up" in bodies.seen
    assert len(events.of(What.JOB_CANCELED)) == 1
    running.tick()
    wait_for(lambda: (None, "canceled") in bodies.seen)


def test_a_body_that_ends_well_all_the_same_keeps_its_outcome_in_the_attempt(running: Driver, jobs):
    job = bodies.swallow_interruption.enqueue()
    start(running, job)
    scheduler.cancel(job)
    running.beat()
    wait_for(lambda: running.in_flight == 0)
    assert jobs.get(job.id).state == State.CANCELED
    (attempt,) = jobs.attempts_of(job.id)
    assert (attempt.outcome, attempt.result) == ("success", "done all the same")


def test_an_error_of_its_clean_up_is_a_cancel_still(running: Driver, jobs):
    job = bodies.fail_of_interruption.enqueue()
    start(running, job)
    scheduler.cancel(job)
    running.beat()
    wait_for(lambda: running.in_flight == 0)
    assert jobs.get(job.id).state == State.CANCELED
    (attempt,) = jobs.attempts_of(job.id)
    assert (attempt.outcome, attempt.error_class) == ("canceled", "tests.app.jobs.Broken")


def test_a_forced_cancel_ends_it_too_and_its_end_is_dropped(running: Driver, jobs, events):
    job = bodies.spin_interruptible.enqueue()
    start(running, job)
    assert scheduler.cancel(job, force=True)
    running.beat()
    wait_for(lambda: running.in_flight == 0)
    assert "cleaned up" in bodies.seen
    assert "job.lost" in events.whats()
    assert outcomes(jobs, job) == ["canceled"]


def test_a_cancel_of_its_parent_reaches_it(running: Driver, jobs):
    parent = bodies.wait_at.enqueue("g")
    start(running, parent, "at g")
    child = bodies.spin_interruptible.using(parent=parent).enqueue()
    start(running, child)
    assert scheduler.cancel(parent)
    running.beat()
    wait_for(lambda: jobs.get(child.id).state == State.CANCELED)
    bodies.gates["g"].set()
    wait_for(lambda: running.in_flight == 0)
    assert jobs.get(parent.id).state == State.CANCELED


def test_one_that_does_not_react_is_abandoned_and_ends_canceled(running: Driver, jobs, events):
    job = bodies.sit_interruptible.enqueue("g")
    start(running, job, "sits at g")
    scheduler.cancel(job)
    running.beat()
    wait_for(lambda: events.of(What.JOB_CANCELED))
    assert jobs.get(job.id).state == State.CANCELED
    (attempt,) = jobs.attempts_of(job.id)
    assert (attempt.outcome, attempt.error_class) == ("canceled", "django_helisched.Interrupted")
    assert "after it was asked to stop, and was abandoned" in attempt.error


def test_one_that_is_left_alone_runs_to_its_end(running: Driver, jobs):
    job = bodies.sit_interruptible.enqueue("g")
    start(running, job, "sits at g")
    running.beat()
    bodies.gates["g"].set()
    wait_for(lambda: running.in_flight == 0)
    assert jobs.get(job.id).state == State.SUCCESS


def test_a_body_that_did_not_ask_for_it_is_not_interrupted(running: Driver, jobs):
    job = bodies.wait_at.enqueue("g")
    start(running, job, "at g")
    scheduler.cancel(job)
    running.beat()
    bodies.gates["g"].set()
    wait_for(lambda: running.in_flight == 0)
    assert jobs.get(job.id).state == State.CANCELED
    assert outcomes(jobs, job) == ["success"]


def test_the_seat_runs_the_next_job_after_it(running: Driver, jobs):
    job = bodies.spin_interruptible.enqueue()
    start(running, job)
    scheduler.cancel(job)
    running.beat()
    wait_for(lambda: running.in_flight == 0)
    others = [bodies.tell.enqueue(number) for number in range(4)]
    for _ in others:
        running.tick()
        wait_for(lambda: running.in_flight == 0)
    assert all(jobs.get(other.id).state == State.SUCCESS for other in others)


def test_an_async_function_needs_and_takes_no_such_option():
    async def crawl() -> None: ...

    crawl.__qualname__ = "crawl"
    with pytest.raises(TypeError, match=r"interruptible=True on .*crawl is for plain functions"):
        action(interruptible=True)(crawl)


def test_the_option_is_true_or_false():
    def body() -> None: ...

    body.__qualname__ = "body"
    with pytest.raises(InvalidOption, match="interruptible='yes' must be True or False"):
        action(interruptible="yes")(body)  # type: ignore[call-overload]
