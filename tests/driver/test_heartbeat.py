"""Heartbeats renew what is held, and bring back cancels and losses."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from django_helisched import scheduler
from django_helisched.driver import ThreadSeats
from django_helisched.driver.events import What
from django_helisched.driver.held import HeldClaims
from django_helisched.jobs.job import State
from tests.app import jobs as bodies
from tests.driver.conftest import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.driver import Driver

DEADLINE = 10.0


def wait_for(condition: Callable[[], Any]) -> None:
    """Return once a thread has made it true."""
    never, looks = threading.Event(), 0
    while not condition():
        looks += 1
        assert looks < DEADLINE / 0.01
        never.wait(0.01)


def run_all(driver: Driver) -> None:
    """Tick until everything that is due has ended."""
    # A pass that found no free seat says nothing: all are to be free before it.
    wait_for(lambda: not driver.in_flight and not driver._seating.taken and driver.tick().claimed == 0)


@pytest.fixture
def running(make_driver):
    """Give a driver with two threads and a gate that is closed."""
    bodies.gates["g"] = threading.Event()
    return make_driver(seats=ThreadSeats(2))


def test_a_beat_renews_the_lease_of_what_runs(running: Driver, jobs, clock):
    job = bodies.wait_at.enqueue("g")
    running.tick()
    clock.advance(25)
    running.beat()
    assert jobs.get(job.id).lease_expires_at == clock.now() + LEASE


def test_a_beat_reports_the_worker(running: Driver, jobs):
    bodies.wait_at.enqueue("g")
    running.tick()
    running.beat()
    (report,) = jobs.live_workers(timedelta(seconds=1))
    assert (report.id, report.seats, report.in_flight, report.state) == ("worker-0", 2, 1, "running")
    assert "tests.app.jobs.note" in report.functions


def test_an_async_action_is_canceled_by_the_beat_that_learns_of_it(running: Driver, jobs):
    job = bodies.wait_async.enqueue("a")
    running.tick()
    wait_for(lambda: "a" in bodies.seen)
    scheduler.cancel(job)
    running.beat()
    wait_for(lambda: running.in_flight == 0)
    assert jobs.get(job.id).state == State.CANCELED
    assert bodies.seen == ["a", "a canceled"]
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["canceled"]


def test_a_plain_body_sees_the_cancel_when_it_looks(running: Driver, jobs):
    job = bodies.watch_for_cancel.enqueue()
    running.tick()
    wait_for(lambda: bodies.seen)
    scheduler.cancel(job)
    running.beat()
    wait_for(lambda: running.in_flight == 0)
    assert jobs.get(job.id).state == State.CANCELED


def test_an_async_action_whose_lease_is_lost_is_stopped(running: Driver, jobs, events):
    job = bodies.wait_async.enqueue("a")
    running.tick()
    wait_for(lambda: "a" in bodies.seen)
    scheduler.cancel(job, force=True)
    running.beat()
    wait_for(lambda: running.in_flight == 0)
    assert "job.lost" in events.whats()


def test_a_beat_stores_the_newest_progress(running: Driver, jobs):
    bodies.gates["progress"] = threading.Event()
    job = bodies.report_progress.enqueue(40)
    running.tick()
    wait_for(lambda: bodies.seen)
    running.beat()
    found = jobs.progress_of(job.id)
    assert (found.done, found.total, found.message) == (40, 100, "a NUL \\x00")


def test_progress_that_no_column_holds_is_cut_to_what_fits(running: Driver, jobs):
    bodies.gates["progress"] = threading.Event()
    job = bodies.report_progress.enqueue(10**30)
    running.tick()
    wait_for(lambda: bodies.seen)
    running.beat()
    assert jobs.progress_of(job.id).done == 2**63 - 1


def test_a_failing_beat_tells_the_body_and_is_said_once(running: Driver, store, events):
    bodies.wait_at.enqueue("g")
    running.tick()
    (held,) = running._held.all()
    store.fail("heartbeat", OperationalError("gone"), OperationalError("gone"))
    first = running._heartbeat._try(running.beat)
    assert held.control.lease_at_risk
    second = running._heartbeat._try(running.beat)
    assert len(events.of(What.HEARTBEAT_LOST)) == 1
    assert 0 < first <= second < LEASE.total_seconds() / 3
    assert running._heartbeat._try(running.beat) == LEASE.total_seconds() / 3
    assert not held.control.lease_at_risk
    assert len(events.of(What.HEARTBEAT_BACK)) == 1


def test_a_heartbeat_thread_survives_any_error(make_driver, store):
    driver = make_driver(lease=timedelta(seconds=0.03), seats=ThreadSeats(1))
    store.fail("report_worker", RuntimeError("a bug"), OperationalError("gone"))
    driver._heartbeat.start()
    wait_for(lambda: store.calls.count("report_worker") >= 4)
    driver._heartbeat.stop()


def test_of_two_claims_of_one_job_only_the_newer_is_renewed(jobs, clock):
    bodies.note.enqueue("a")
    (older,) = jobs.claim(worker_id="w", limit=1, lease=LEASE)
    claims = HeldClaims()
    first = claims.add(older)
    second = claims.add(replace(older, fence=older.fence + 1))
    assert first.control.lease_lost
    assert claims.all() == [second]
    claims.drop(first)
    assert claims.all() == [second]


def test_a_cancel_that_came_before_the_body_began_is_not_forgotten(jobs):
    bodies.note.enqueue("a")
    (claim,) = jobs.claim(worker_id="w", limit=1, lease=LEASE)
    held = HeldClaims().add(claim)
    held.tell_canceled()
    interrupted: list[bool] = []
    with held.interruptible(lambda: interrupted.append(True)):
        pass
    held.renew()
    assert interrupted == [True]
    assert held.must_stop
