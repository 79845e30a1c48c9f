"""What a body knows of its job, and what it leaves behind for the next: nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched.driver import ThreadSeats
from django_helisched.exceptions import JobEnded
from django_helisched.stores.base import JobFilter
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.stores.memory import MemoryJobStore


def parents(jobs: MemoryJobStore) -> dict[Any, Any]:
    """Return parent ids by the mark of the child."""
    found = jobs.list(JobFilter(fn_path="tests.app.jobs.note"))
    return {jobs.args_of(job.id)["args"][0]: job.parent_id for job in found}


def test_a_job_enqueued_by_a_job_is_its_child(driver: Driver, jobs):
    job = bodies.enqueue_note.enqueue("a")
    driver.tick()
    assert parents(jobs) == {"a": job.id}


def test_the_parent_flows_into_awaited_code_tasks_and_to_thread(driver: Driver, jobs):
    job = bodies.enqueue_everywhere.enqueue("a")
    driver.tick()
    assert parents(jobs) == {"a awaited": job.id, "a task": job.id, "a thread": job.id}


def test_two_threads_never_swap_parents(make_driver, jobs):
    driver = make_driver(seats=ThreadSeats(2))
    bodies.gates.update(one=threading.Event(), two=threading.Event())
    one = bodies.enqueue_behind.enqueue("one", "first")
    two = bodies.enqueue_behind.enqueue("two", "second")
    driver.tick()
    bodies.gates["two"].set()
    bodies.gates["one"].set()
    driver.drain()
    assert parents(jobs) == {"first": one.id, "second": two.id}


def test_a_callback_has_no_parent(driver: Driver, jobs):
    bodies.tell.using(on_complete=bodies.told).enqueue("a")
    driver.tick()
    driver.tick()
    (callback,) = jobs.list(JobFilter(fn_path="tests.app.jobs.told"))
    assert callback.parent_id is None


def test_the_context_of_an_ended_job_raises(driver: Driver):
    bodies.keep_context.enqueue()
    driver.tick()
    (context,) = bodies.seen
    with pytest.raises(JobEnded):
        context.raise_if_canceled()


def test_the_attempt_goes_on_counting(driver: Driver, clock):
    bodies.fail_until.enqueue(2)
    bodies.show_context.enqueue()
    driver.tick()
    clock.advance(60)
    driver.tick()
    assert bodies.seen == [(None, 0, None, 1)]


def test_every_job_starts_with_a_clean_thread(driver: Driver):
    for _ in range(2):
        bodies.leave_thread_state.enqueue()
    driver.tick()
    assert bodies.seen == [("", "en-us", "UTC")] * 2
    assert bodies.left_behind.get() == ""
