"""Limits as a driver keeps them: what it runs at once, what waits, and what a look costs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched import scheduler, wiring
from django_helisched.driver import Driver, DriverConfig, InlineSeats, ThreadSeats
from django_helisched.driver.once import run_once
from django_helisched.jobs.job import Hold, State
from django_helisched.models import Limit
from django_helisched.stores.base import EVERY_QUEUE, JobFilter
from django_helisched.stores.orm import OrmCronStore, OrmJobStore
from tests.app import jobs as bodies
from tests.driver.conftest import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.stores.memory import MemoryJobStore


def states(jobs: MemoryJobStore) -> list[str]:
    return [str(job.state) for job in reversed(jobs.list(JobFilter()))]


def test_no_more_run_at_once_than_the_limit_allows(make_driver, jobs: MemoryJobStore):
    for gate in "abc":
        bodies.gates[gate] = threading.Event()
        bodies.narrow_gate.enqueue(gate)
    other = bodies.note.enqueue("free")
    driver = make_driver(seats=ThreadSeats(4))
    assert driver.tick().claimed == 3
    assert driver.tick().claimed == 0
    assert states(jobs)[:3] == [State.IN_PROGRESS, State.IN_PROGRESS, State.PENDING]
    assert jobs.get(other.id) is not None
    assert jobs.out_under(f"fn:{bodies.narrow_gate.path}") == 2


def test_a_slot_that_is_free_wakes_the_driver_at_once(make_driver, jobs: MemoryJobStore):
    for gate in "abc":
        bodies.gates[gate] = threading.Event()
        bodies.narrow_gate.enqueue(gate)
    driver = make_driver(seats=ThreadSeats(4), poll_min=LEASE, poll_max=LEASE)
    driver.tick()
    bodies.gates["a"].set()
    while driver.tick().claimed == 0:
        driver.wait()  # a poll comes after half a minute: what ends this is the ring of the one that has ended
    assert states(jobs) == [State.SUCCESS, State.IN_PROGRESS, State.IN_PROGRESS]


def test_two_drivers_together_keep_the_limit(make_driver, jobs: MemoryJobStore):
    for gate in "abcd":
        bodies.gates[gate] = threading.Event()
        bodies.narrow_gate.enqueue(gate)
    first, second = make_driver(seats=ThreadSeats(1)), make_driver(seats=ThreadSeats(4))
    assert [first.tick().claimed, second.tick().claimed] == [1, 1]
    assert [first.tick().claimed, second.tick().claimed] == [0, 0]


def test_a_job_that_fails_gives_its_slot_to_the_next_and_waits_again(make_driver, jobs: MemoryJobStore, clock):
    first = bodies.narrow_again.enqueue(2)
    second = bodies.narrow_again.enqueue(1)
    driver = make_driver(seats=InlineSeats(1))
    assert driver.tick().claimed == 1
    assert driver.tick().claimed == 1
    failed = jobs.get(first.id)
    assert failed is not None
    assert (failed.state, failed.hold) == (State.PENDING, Hold.LATER)
    assert jobs.get(second.id).state == State.SUCCESS  # type: ignore[union-attr]
    clock.advance(60)
    assert driver.tick().claimed == 1
    assert jobs.get(first.id).state == State.SUCCESS  # type: ignore[union-attr]


def test_the_slots_of_a_dead_driver_are_free_with_its_leases(make_driver, jobs: MemoryJobStore, clock):
    for mark in "abc":
        bodies.narrow.enqueue(mark)
    jobs.admit(limits=make_driver()._claiming._limits())
    assert len(jobs.claim(worker_id="dead", limit=9, lease=LEASE, queues=EVERY_QUEUE)) == 2
    driver = make_driver()
    assert driver.tick().claimed == 0
    for _ in range(4):
        clock.advance(LEASE.total_seconds())
        driver.beat()
        driver.tick()
    clock.advance(600)
    driver.beat()
    while driver.tick().claimed:
        pass
    assert states(jobs) == [State.SUCCESS] * 3


def test_a_job_that_comes_later_is_waited_for_to_the_moment(make_driver, clock):
    bodies.narrow.run_after(10, "later")
    driver = make_driver()
    driver.tick()
    assert driver._claiming.claim(clock.now()).next_due_at == clock.now() + 10 * clock.now().resolution * 1_000_000


def test_once_runs_everything_that_was_due_at_its_start(make_driver, jobs: MemoryJobStore):
    for mark in range(7):
        bodies.narrow.enqueue(mark)
    run_once(make_driver(seats=ThreadSeats(4), poll_max=LEASE / 1000, poll_min=LEASE / 1000))
    assert states(jobs) == [State.SUCCESS] * 7


def test_what_waits_for_a_limit_that_others_hold_does_not_keep_once_from_ending(make_driver, jobs: MemoryJobStore):
    for mark in "abc":
        bodies.narrow.enqueue(mark)
    jobs.admit(limits=make_driver()._claiming._limits())
    jobs.claim(worker_id="other", limit=9, lease=100 * LEASE, queues=EVERY_QUEUE)
    run_once(make_driver(seats=ThreadSeats(4), poll_max=LEASE / 1000, poll_min=LEASE / 1000))
    assert states(jobs).count(State.PENDING) == 1


def test_the_key_of_each_call(jobs: MemoryJobStore):
    keys = [
        bodies.narrow.enqueue(1),
        bodies.ship.enqueue(7),
        bodies.ship.enqueue(order_id=7, note="n"),
        bodies.ship.using(space="s").enqueue(8, "n", "more"),
        bodies.by_space.using(space="acme").enqueue(1),
        bodies.note.enqueue(1),
        scheduler.enqueue(bodies.ship.path, [9]),
        *scheduler.enqueue_many([(bodies.ship, {"order_id": 10})]),
    ]
    assert [job.limit_key for job in keys] == [
        f"fn:{bodies.narrow.path}",
        "order:7",
        "order:7",
        "order:8",
        "space:acme",
        "",
        "order:9",
        "order:10",
    ]


def test_a_callback_has_the_limit_of_its_function(driver: Driver, jobs: MemoryJobStore):
    job = bodies.note.using(on_complete=bodies.limited_callback).enqueue(1)
    driver.tick()
    [callback] = [row for row in jobs.list(JobFilter()) if row.trigger == "on_complete"]
    assert callback.limit_key == f"{job.id}/end"
    driver.tick()
    assert bodies.seen == [1, (str(job.id), "end")]


@pytest.fixture
def stores(transactional_db: None, clock):
    jobs, crons = OrmJobStore("default", clock), OrmCronStore("default", clock)
    with wiring.replaced(jobs, crons):
        yield jobs, crons


def statements(stores: Any, enqueue: Callable[[int], Any], *, jobs: int) -> float:
    """Return how many statements a driver with two seats needs for each of so many jobs."""
    for number in range(jobs):
        enqueue(number)
    config = DriverConfig(worker_id="w", lease=LEASE)
    driver = Driver(stores[0], stores[1], config, seats=InlineSeats(2))
    driver.tick()
    with CaptureQueriesContext(connection) as queries:
        done = 0
        while done < jobs - 2:
            claimed = driver.tick().claimed
            assert 0 < claimed <= 2 * 2  # a tick that is woken makes two passes
            done += claimed
    return len(queries) / done


def test_a_job_with_a_limit_costs_about_twice_the_statements_of_one_without(stores):
    free = statements(stores, bodies.tell.enqueue, jobs=30)
    # After a claim that took long, the next one lists the heads by a statement of its own: a tenth for that.
    assert statements(stores, bodies.narrow.enqueue, jobs=30) <= 2.2 * free


def test_a_full_key_delays_nobody_elses_jobs_by_more_than_a_pass(stores):
    jobs, crons = stores
    calls: list[Any] = [(bodies.ship, [1]) for _ in range(200)]
    scheduler.enqueue_many(calls)
    others = scheduler.enqueue_many([(bodies.by_space, [mark]) for mark in range(30)])
    driver = Driver(jobs, crons, DriverConfig(worker_id="w", lease=LEASE), seats=InlineSeats(8))
    left = {job.id for job in others}
    ticks = 0
    while left:
        ticks += 1
        driver.tick()
        left -= {job.id for job in jobs.list(JobFilter(states=["success"]), limit=1000)}
    assert ticks <= 30 / 3
    assert Limit.objects.count() == 2


def test_an_idle_look_costs_one_statement_for_all_that_waits(stores):
    jobs, _ = stores
    with CaptureQueriesContext(connection) as queries:
        jobs.admit()
    assert len(queries) == 1


def test_an_idle_sweep_soon_after_a_write_costs_one_statement(stores):
    jobs, crons = stores
    driver = Driver(jobs, crons, DriverConfig(threads=0), seats=InlineSeats(0))
    bodies.note.enqueue("pending")
    bodies.note.run_after(3600, "later")
    driver.sweep()
    assert not jobs.has_chores()
    with CaptureQueriesContext(connection) as queries:
        driver.sweep()
    statements = [query["sql"] for query in queries if query["sql"].startswith(("SELECT", "UPDATE", "INSERT"))]
    assert [sql[:6] for sql in statements] == ["SELECT"]
