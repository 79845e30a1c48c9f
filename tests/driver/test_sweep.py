"""Sweeps take back what dead workers held, on the second look."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django_helisched import scheduler
from django_helisched.driver import Tick
from django_helisched.driver.events import What
from django_helisched.jobs.job import State
from tests.app import jobs as bodies
from tests.driver.conftest import LEASE

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.stores.memory import MemoryJobStore


def claimed_by_the_dead(jobs: MemoryJobStore) -> None:
    (claim,) = jobs.claim(worker_id="dead", limit=1, lease=LEASE)
    assert claim.lease_holder == "dead"


def look_twice(driver: Driver, clock: Any) -> None:
    driver.sweep()
    clock.advance(10)
    driver.sweep()


def test_a_lost_job_is_recovered_within_lease_sweep_and_a_third_of_the_lease(driver: Driver, jobs, clock, events):
    job = bodies.note.enqueue("a")
    claimed_by_the_dead(jobs)
    driver.tick()
    begun = clock.now()
    while jobs.get(job.id).state == State.IN_PROGRESS:
        clock.advance(1)
        driver.tick()
    assert LEASE < clock.now() - begun <= LEASE + timedelta(seconds=30) + LEASE / 3 + timedelta(seconds=1)
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["lost"]
    (event,) = events.of(What.JOB_SWEPT)
    assert "dead" in event.text
    clock.advance(60)
    driver.tick()
    assert jobs.get(job.id).state == State.SUCCESS


def test_the_first_sighting_schedules_the_second_look_sooner_than_the_next_sweep(make_driver, jobs, clock):
    driver = make_driver(sweep=timedelta(minutes=10))
    bodies.note.enqueue("a")
    claimed_by_the_dead(jobs)
    clock.advance(31)
    assert driver.tick().swept == 0
    clock.advance(10)
    assert driver.tick() == Tick(fired=0, swept=1, claimed=0)


def test_sweeps_come_at_their_pace(make_driver, store, clock):
    driver = make_driver(sweep=timedelta(seconds=20))
    for _ in range(100):
        driver.tick()
        clock.advance(1)
    assert store.calls.count("sweep") == 5


def test_a_clock_that_was_set_back_does_not_put_off_the_sweep(driver: Driver, store, clock):
    driver.tick()
    clock.advance(-3600)
    driver.tick()
    assert store.calls.count("sweep") == 2


def test_the_own_row_is_written_before_the_sweep_counts_as_a_second_look(driver: Driver, store):
    driver.sweep()
    assert store.calls.index("report_worker") < store.calls.index("sweep")


def test_a_write_of_this_very_moment_does_not_stand_for_the_one_before_a_second_look(
    driver: Driver, jobs, store, clock
):
    driver.sweep()
    bodies.note.enqueue("a")
    claimed_by_the_dead(jobs)
    clock.advance(41)
    driver.sweep()
    driver.beat()
    store.calls.clear()
    driver.sweep()
    assert store.calls.index("report_worker") < store.calls.index("sweep")


def test_a_job_that_nobody_may_start_any_more_is_ended_by_the_sweep(driver: Driver, jobs, clock):
    job = bodies.note.using(expires_at=clock.now() + timedelta(seconds=5)).run_after(3600, "late")
    clock.advance(31)
    assert driver.sweep() == 1
    assert jobs.get(job.id).failure_reason == "expired"


def test_a_held_job_comes_back_once_its_function_is_known(driver: Driver, jobs):
    job = bodies.note.enqueue("a")
    jobs.rows.tables.put(replace(jobs.get(job.id), hold="unknown_function", held_at=jobs.now()))
    assert driver.tick().claimed == 1
    assert bodies.seen == ["a"]


def test_the_fifth_loss_is_final(driver: Driver, jobs, clock):
    job = bodies.note.enqueue("a")
    for _ in range(5):
        clock.advance(700)
        claimed_by_the_dead(jobs)
        clock.advance(61)
        look_twice(driver, clock)
    row = jobs.get(job.id)
    assert (row.state, row.failure_reason, row.losses) == (State.FAILED, "lost", 5)


def test_a_canceled_job_of_a_dead_worker_ends_canceled(driver: Driver, jobs, clock):
    job = bodies.note.enqueue("a")
    claimed_by_the_dead(jobs)
    scheduler.cancel(job)
    clock.advance(61)
    look_twice(driver, clock)
    assert jobs.get(job.id).state == State.CANCELED


def test_leases_that_lapsed_while_the_database_took_no_writes_are_renewed_first(driver: Driver, jobs, clock):
    bodies.note.enqueue("a")
    driver.sweep()
    (claim,) = jobs.claim(worker_id="silent", limit=1, lease=LEASE)
    clock.advance(200)
    assert driver.sweep() == 0
    assert not jobs.heartbeat([claim], lease=LEASE).lost
    clock.advance(10)
    assert driver.sweep() == 0


def test_a_scheduler_that_has_just_started_takes_nothing_back_at_its_first_look(driver: Driver, jobs, clock):
    bodies.note.enqueue("a")
    claimed_by_the_dead(jobs)
    clock.advance(61)
    assert driver.sweep() == 0
    clock.advance(10)
    assert driver.sweep() == 1


def test_what_lapsed_ten_leases_ago_is_taken_back_at_the_first_look(driver: Driver, jobs, clock):
    bodies.note.enqueue("a")
    claimed_by_the_dead(jobs)
    clock.advance(11 * 30 + 1)
    assert driver.sweep() == 1


def test_a_beat_keeps_the_watch(driver: Driver, jobs, clock):
    driver.sweep()
    bodies.note.enqueue("a")
    claimed_by_the_dead(jobs)
    for _ in range(7):
        clock.advance(10)
        driver.beat()
    assert driver.sweep() == 1
