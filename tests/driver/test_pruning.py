"""Old rows are deleted in idle time, a few at a time."""

from __future__ import annotations

import threading
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from django.db import OperationalError, ProgrammingError

from django_helisched.driver import ThreadSeats
from django_helisched.driver.events import What
from django_helisched.driver.once import run_once
from django_helisched.jobs.ids import first_id
from django_helisched.jobs.job import NewJob
from django_helisched.jobs.retention import Keep, Retention
from django_helisched.stores.base import JobFilter, WorkerReport
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.stores.memory import MemoryJobStore

DAY = timedelta(days=1)
PRUNES = ("surplus", "prune", "prune_workers", "prune_batches")

_numbers = count()


@pytest.fixture
def old(jobs: MemoryJobStore, clock: Any) -> Any:
    """Store jobs that ended so long ago that they may go."""

    def old(number: int = 1) -> None:
        canceled(jobs, number)
        clock.advance(8 * DAY)

    return old


def canceled(jobs: MemoryJobStore, number: int) -> None:
    now = jobs.now()
    ids = [UUID(int=first_id(now).int + next(_numbers)) for _ in range(number)]
    fields: dict[str, Any] = {"fn_path": "tests.app.jobs.note", "created_at": now, "due_at": now, "next_run_at": now}
    jobs.enqueue([NewJob(id=job_id, **fields) for job_id in ids])
    for job_id in ids:
        jobs.cancel(job_id)


def left(jobs: MemoryJobStore) -> int:
    return len(jobs.list(JobFilter(), limit=10_000))


def idle_ticks(driver: Driver, clock: Any, number: int = 20) -> int:
    """Tick so often that a round comes to its end, and return how many rows were deleted."""
    clock.advance(60)
    return sum(driver.tick().pruned for _ in range(number))


def prunes(store: Any) -> int:
    return sum(store.calls.count(verb) for verb in PRUNES)


def test_old_jobs_go_by_and_by_while_nothing_is_due(driver: Driver, jobs, clock, old):
    old(250)
    assert driver.tick().pruned == 0  # it has just started
    clock.advance(60)
    assert [driver.tick().pruned for _ in range(8)] == [0, 0, 100, 100, 50, 0, 0, 0]
    assert left(jobs) == 0


def test_after_a_step_that_found_something_the_driver_looks_again_soon(driver: Driver, clock, old):
    old()
    driver.tick()
    clock.advance(60)
    while not driver.tick().pruned:
        pass
    assert driver._look is not None
    assert driver._pace.seconds_after(driver._look, clock.now()) == 0.05


def test_a_due_job_comes_first(driver: Driver, jobs, clock, old):
    old()
    driver.tick()
    clock.advance(60)
    bodies.note.enqueue("a")
    tick = driver.tick()
    assert (tick.claimed, tick.pruned) == (1, 0)
    assert left(jobs) == 2


def test_what_is_due_in_a_moment_is_not_made_to_wait(driver: Driver, store, clock, old):
    old()
    driver.tick()
    bodies.note.run_after(60.05, "a")
    clock.advance(60)
    store.calls.clear()
    driver.tick()
    assert prunes(store) == 0


def test_with_all_seats_taken_nothing_is_pruned(make_driver, store, clock, old):
    bodies.gates["g"] = threading.Event()
    driver = make_driver(seats=ThreadSeats(1))
    old()
    driver.tick()
    bodies.wait_at.enqueue("g")
    driver.tick()
    clock.advance(60)
    store.calls.clear()
    driver.tick()
    assert prunes(store) == 0


def test_a_round_that_found_nothing_is_followed_by_a_rest(driver: Driver, store, clock):
    driver.tick()
    idle_ticks(driver, clock)
    store.calls.clear()
    for _ in range(500):
        clock.advance(1)
        driver.tick()
    assert prunes(store) == 0
    clock.advance(101)
    idle_ticks(driver, clock)
    assert store.calls.count("prune") == 3


def test_after_a_round_that_found_something_the_next_one_comes_soon(driver: Driver, jobs, clock, old):
    old()
    driver.tick()
    assert idle_ticks(driver, clock) == 1
    old()
    assert idle_ticks(driver, clock) == 1


def test_a_clock_that_was_set_back_does_not_put_off_the_round(driver: Driver, store, clock):
    driver.tick()
    idle_ticks(driver, clock)
    clock.advance(-DAY)
    store.calls.clear()
    driver.tick()
    assert prunes(store) == 1


def test_a_round_says_once_what_it_deleted(driver: Driver, jobs, clock, events, old):
    jobs.report_worker(WorkerReport(id="gone", started_at=clock.now()))
    old(120)
    driver.tick()
    idle_ticks(driver, clock)
    (event,) = events.of(What.DRIVER_PRUNED)
    assert event.text == "Deleted old rows: 120 canceled, 1 workers."


def test_a_round_that_found_nothing_says_nothing(driver: Driver, clock, events):
    driver.tick()
    idle_ticks(driver, clock)
    assert not events.of(What.DRIVER_PRUNED)


def test_several_drivers_at_once_delete_each_row_once(make_driver, jobs, clock, old):
    old(330)
    drivers = [make_driver() for _ in range(3)]
    for driver in drivers:
        driver.tick()
    clock.advance(60)
    assert sum(driver.tick().pruned for _ in range(10) for driver in drivers) == 330
    assert left(jobs) == 0


def test_a_driver_that_is_told_to_keep_everything_deletes_nothing(make_driver, store, jobs, clock, old):
    driver = make_driver(retention=None)
    old()
    driver.tick()
    idle_ticks(driver, clock)
    assert (left(jobs), prunes(store), driver.prune()) == (1, 0, 0)


def test_ages_and_numbers_are_the_configs(make_driver, jobs, clock):
    kept = Retention(canceled=Keep(age=None, count=2), workers=None, fires=None)
    driver = make_driver(retention=kept)
    canceled(jobs, 5)
    driver.tick()
    assert idle_ticks(driver, clock) == 3
    assert left(jobs) == 2


def test_a_conflict_puts_the_round_off_and_nobody_hears_of_it(driver: Driver, store, jobs, clock, events, old):
    jobs.is_transient = lambda error: isinstance(error, OperationalError)
    old()
    driver.tick()
    store.fail("prune", OperationalError("deadlock detected"))
    assert idle_ticks(driver, clock) == 0
    assert not events.of(What.DRIVER_NOTICE)
    assert idle_ticks(driver, clock) == 1


def test_a_database_that_does_not_answer_is_the_loops_to_wait_for(driver: Driver, store, clock, old):
    old()
    driver.tick()
    clock.advance(60)
    store.fail("prune", OperationalError("server closed the connection"))
    with pytest.raises(OperationalError):
        driver.tick()
    assert driver.tick().claimed == 0


def test_a_refusal_is_told_and_costs_no_job(driver: Driver, store, clock, events, old):
    old()
    driver.tick()
    clock.advance(60)
    store.fail("prune", ProgrammingError("permission denied for table helisched_job"))
    driver.tick()
    (event,) = events.of(What.DRIVER_NOTICE)
    assert "Old rows could not be deleted (ProgrammingError: permission denied" in event.text
    bodies.note.enqueue("a")
    assert driver.tick().claimed == 1


def test_an_external_crons_process_prunes_before_it_ends(make_driver, jobs, old):
    old(250)
    run_once(make_driver())
    assert left(jobs) == 0
