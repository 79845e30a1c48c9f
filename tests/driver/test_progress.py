"""Progress is seen while the job runs, and what it came to once it has ended."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from django_helisched import scheduler
from django_helisched.driver import ThreadSeats
from django_helisched.jobs.job import State
from tests.app import jobs as bodies
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from django_helisched.driver import Driver


def reached(jobs: Any, job: Any) -> int | None:
    found = jobs.progress_of(job.id)
    return None if found is None else found.done


@pytest.fixture
def beating(make_driver):
    """Give a driver with two threads whose heartbeat goes on by itself, once an hour."""
    bodies.gates["g"] = threading.Event()
    driver = make_driver(seats=ThreadSeats(2), lease=timedelta(hours=3))
    driver._heartbeat.start()
    yield driver
    bodies.gates["g"].set()
    driver._heartbeat.stop()


def test_a_report_is_stored_long_before_the_next_heartbeat(beating: Driver, jobs, store):
    job = bodies.report_steps.enqueue("g", 2)
    beating.tick()
    wait_for(lambda: reached(jobs, job) == 1)
    bodies.gates["g"].set()
    wait_for(lambda: reached(jobs, job) == 2)
    assert store.calls.count("heartbeat") == 0
    assert store.calls.count("progress") == 2


def test_of_many_reports_the_newest_is_stored_with_the_end(driver: Driver, jobs, store):
    job = bodies.count_to.enqueue(1000)
    driver.tick()
    assert reached(jobs, job) == 1000
    assert store.calls.count("progress") == 0


def test_what_a_failed_attempt_came_to_stays(driver: Driver, jobs):
    job = bodies.count_to.using(max_failures=1).enqueue(13)
    driver.tick()
    assert jobs.get(job.id).state == State.FAILED
    assert reached(jobs, job) == 13


def test_anybody_may_ask(driver: Driver, jobs):
    job = bodies.count_to.enqueue(5)
    driver.tick()
    for asked in (job, job.id, str(job.id)):
        found = scheduler.progress_of(asked)
        assert found is not None
        assert (found.done, found.total) == (5, 5)


def test_jobs_that_report_nothing_cost_nothing(beating: Driver, jobs, store):
    job = bodies.tell.enqueue("a")
    beating.tick()
    beating.drain()
    beating.beat()
    assert reached(jobs, job) is None
    assert store.calls.count("progress") == 0


def test_a_report_that_could_not_be_stored_is_stored_with_the_next_heartbeat(make_driver, jobs, store):
    driver = make_driver(seats=ThreadSeats(1))
    bodies.gates["g"] = threading.Event()
    job = bodies.report_steps.enqueue("g", 1)
    driver.tick()
    wait_for(lambda: bodies.seen)
    store.fail("progress", OperationalError("gone"))
    driver._heartbeat._try_to_store()
    assert reached(jobs, job) is None
    driver.beat()
    assert reached(jobs, job) == 1


def test_a_report_made_while_the_one_before_is_stored_is_not_lost(make_driver, jobs, store):
    driver = make_driver(seats=ThreadSeats(1))
    bodies.gates["g"] = threading.Event()
    job = bodies.report_steps.enqueue("g", 2)
    driver.tick()
    wait_for(lambda: bodies.seen)
    (held,) = driver._held.all()
    report = held.unstored_progress()
    bodies.gates["g"].set()
    wait_for(lambda: ("reported", 2) in bodies.seen)
    held.stored_progress(report)
    driver.beat()
    assert reached(jobs, job) == 2
