"""Async actions run together on one loop, and none of them can harm another, or the loop."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched import scheduler
from django_helisched.driver.events import What
from django_helisched.driver.loop_watch import LoopWatch
from django_helisched.jobs.job import State
from django_helisched.stores.base import JobFilter
from tests.app import jobs as bodies
from tests.driver.test_context import parents
from tests.driver.test_heartbeat import run_all, wait_for

if TYPE_CHECKING:
    from django_helisched.driver import Driver


@pytest.fixture
def driver(make_driver) -> Driver:
    """Give a driver with one thread and seats for fifty async jobs."""
    return make_driver(own_seats=True, threads=1, async_jobs=50, async_orm=2)


def tick_until(driver: Driver, condition: Any) -> None:
    def met() -> bool:
        driver.tick()
        return bool(condition())

    wait_for(met)


def states(jobs: Any, made: list[Any]) -> list[str]:
    return [jobs.get(job.id).state for job in made]


def test_as_many_run_at_once_as_there_are_seats(make_driver, jobs):
    driver = make_driver(own_seats=True, threads=0, async_jobs=20)
    door = bodies.doors["d"] = bodies.Door()
    made = [bodies.wait_at_door.enqueue("d") for _ in range(30)]
    tick_until(driver, lambda: len(bodies.seen) == 20)
    assert driver.tick().claimed == 0
    assert states(jobs, made).count(State.IN_PROGRESS) == 20
    door.set()
    run_all(driver)
    assert states(jobs, made) == [State.SUCCESS] * 30


def test_plain_functions_and_async_ones_run_side_by_side(driver: Driver, jobs):
    door = bodies.doors["d"] = bodies.Door()
    waiting = [bodies.wait_at_door.enqueue("d") for _ in range(5)]
    others = [function.enqueue(mark) for mark in range(5) for function in (bodies.note, bodies.tell)]
    tick_until(driver, lambda: states(jobs, others) == [State.SUCCESS] * 10)
    assert states(jobs, waiting) == [State.IN_PROGRESS] * 5
    door.set()
    run_all(driver)
    assert states(jobs, waiting) == [State.SUCCESS] * 5


def test_bodies_run_on_the_loop_and_their_orm_code_in_few_threads(driver: Driver):
    for mark in range(30):
        bodies.name_thread.enqueue(mark)
    run_all(driver)
    assert {thread for thread, _ in bodies.seen} == {"helisched-loop"}
    assert {thread for _, thread in bodies.seen} == {"helisched-orm-1", "helisched-orm-2"}


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError", "NUL"])
def test_what_would_end_a_loop_is_a_failure_of_its_job_alone(driver: Driver, jobs, name):
    door = bodies.doors["d"] = bodies.Door()
    other = bodies.wait_at_door.enqueue("d")
    tick_until(driver, lambda: bodies.seen)
    job = bodies.raise_async.using(max_failures=1).enqueue(name)
    tick_until(driver, lambda: jobs.get(job.id).state == State.FAILED)
    assert jobs.get(job.id).failure_reason == "exhausted"
    door.set()
    run_all(driver)
    assert jobs.get(other.id).state == State.SUCCESS


def test_a_task_of_a_body_cannot_end_the_loop(driver: Driver, jobs):
    door = bodies.doors["d"] = bodies.Door()
    other = bodies.wait_at_door.enqueue("d")
    tick_until(driver, lambda: bodies.seen)
    job = bodies.exit_in_a_task.using(max_failures=1).enqueue()
    tick_until(driver, lambda: jobs.get(job.id).state == State.FAILED)
    assert "SystemExit" in jobs.attempts_of(job.id)[0].error_class
    door.set()
    run_all(driver)
    assert jobs.get(other.id).state == State.SUCCESS


def test_what_a_body_leaves_on_the_loop_ends_with_it(driver: Driver, jobs):
    job = bodies.leave_a_task.enqueue()
    run_all(driver)
    wait_for(lambda: bodies.seen == [False, "the task is canceled"])
    assert jobs.get(job.id).state == State.SUCCESS


def test_a_canceled_body_is_told_by_the_beat_that_learns_of_it(driver: Driver, jobs):
    job, other = bodies.wait_async.enqueue("a"), bodies.wait_async.enqueue("b")
    tick_until(driver, lambda: len(bodies.seen) == 2)
    scheduler.cancel(job)
    driver.beat()
    tick_until(driver, lambda: jobs.get(job.id).state == State.CANCELED)
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["canceled"]
    assert jobs.get(other.id).state == State.IN_PROGRESS
    scheduler.cancel(other, force=True)
    driver.beat()
    run_all(driver)
    assert sorted(bodies.seen) == ["a", "a canceled", "b", "b canceled"]


def test_a_body_whose_claim_is_lost_is_stopped_and_its_end_is_dropped(driver: Driver, jobs, events):
    job = bodies.wait_async.enqueue("a")
    tick_until(driver, lambda: bodies.seen)
    scheduler.cancel(job, force=True)
    driver.beat()
    run_all(driver)
    assert [event.job_id for event in events.of(What.JOB_LOST)] == [job.id]


@pytest.mark.parametrize("body", [bodies.spin_async, bodies.swallow_cancellations])
def test_a_body_is_canceled_at_its_timeout(driver: Driver, jobs, body):
    row = jobs.get((body.enqueue() if body is bodies.spin_async else body.enqueue(0)).id)
    jobs.rows.tables.put(replace(row, timeout=timedelta(seconds=0.02), max_failures=1))
    other = bodies.wait_async.enqueue("goes on")
    tick_until(driver, lambda: jobs.get(row.id).state == State.FAILED)
    assert jobs.get(row.id).failure_reason == "timeout"
    (attempt,) = jobs.attempts_of(row.id)
    assert "stopped after 0.02 s (timeout)" in attempt.error
    assert "tests/app/jobs.py" in attempt.traceback
    assert jobs.get(other.id).state == State.IN_PROGRESS
    scheduler.cancel(other, force=True)
    driver.beat()


@pytest.fixture
def one_seat(make_driver) -> Driver:
    """Give a driver with one seat on the loop, whose bodies have little time to end once they are told to."""
    bodies.doors["d"] = bodies.Door()
    return make_driver(own_seats=True, threads=0, async_jobs=1, timeout_grace=timedelta(seconds=0.05))


def test_a_body_that_swallows_its_timeout_is_left_behind_and_its_seat_is_free(one_seat: Driver, jobs, events):
    row = jobs.get(bodies.swallow_all_async.enqueue("d").id)
    jobs.rows.tables.put(replace(row, timeout=timedelta(seconds=0.02), max_failures=1))
    tick_until(one_seat, lambda: jobs.get(row.id).state == State.FAILED)
    assert jobs.get(row.id).failure_reason == "timeout"
    (attempt,) = jobs.attempts_of(row.id)
    assert "still ran 0.05 s after its timeout, and was abandoned" in attempt.error
    assert "tests/app/jobs.py" in attempt.traceback
    assert "doors[door].wait()" in attempt.traceback
    other = bodies.once_async.enqueue("other")
    tick_until(one_seat, lambda: jobs.get(other.id).state == State.SUCCESS)
    bodies.doors["d"].set()
    wait_for(lambda: events.of(What.JOB_LATE))
    assert len(events.of(What.JOB_ABANDONED)) == len(events.of(What.JOB_LATE)) == 1
    assert [attempt.outcome for attempt in jobs.attempts_of(row.id)] == ["timeout"]
    run_all(one_seat)


def test_a_body_that_swallows_its_cancel_is_left_behind_and_ends_canceled(one_seat: Driver, jobs, events):
    job = bodies.swallow_all_async.enqueue("d")
    tick_until(one_seat, lambda: bodies.seen == ["at d"])
    scheduler.cancel(job)
    one_seat.beat()
    wait_for(lambda: "swallowed" in bodies.seen)
    one_seat.beat()  # told again, it has no more time than before
    tick_until(one_seat, lambda: jobs.get(job.id).state == State.CANCELED)
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["canceled"]
    bodies.doors["d"].set()
    wait_for(lambda: events.of(What.JOB_LATE))
    run_all(one_seat)


def test_every_job_starts_with_a_clean_context(driver: Driver):
    for _ in range(3):
        bodies.leave_loop_state.enqueue()
    run_all(driver)
    assert bodies.seen == [("", "en-us", "UTC")] * 3


def test_the_parent_flows_into_awaited_code_tasks_and_threads(driver: Driver, jobs):
    one, two = bodies.enqueue_everywhere.enqueue("a"), bodies.enqueue_everywhere.enqueue("b")
    run_all(driver)
    expected = {
        f"{mark} {how}": job.id for mark, job in (("a", one), ("b", two)) for how in ("awaited", "task", "thread")
    }
    assert parents(jobs) == expected


def test_the_start_of_an_at_most_once_body_is_written_before_it_runs(driver: Driver, store, jobs):
    job = bodies.once_async.enqueue("a")
    run_all(driver)
    assert store.calls.index("start") < store.calls.index("settle")
    assert jobs.get(job.id).state == State.SUCCESS


def test_a_claim_lost_before_an_at_most_once_body_began_never_begins_it(driver: Driver, jobs, events):
    bodies.once_async.enqueue("a")
    jobs.start = lambda claim: False
    run_all(driver)
    assert bodies.seen == []
    assert "job.lost" in events.whats()


def test_a_drain_waits_for_what_runs_on_the_loop(driver: Driver, jobs):
    door = bodies.doors["d"] = bodies.Door()
    job = bodies.wait_at_door.enqueue("d")
    tick_until(driver, lambda: bodies.seen)
    drained = threading.Thread(target=driver.drain)
    drained.start()
    assert drained.is_alive()
    door.set()
    drained.join(20)
    assert not drained.is_alive()
    assert jobs.get(job.id).state == State.SUCCESS


def test_a_second_stop_does_not_wait_for_the_loop(driver: Driver):
    bodies.doors["d"] = bodies.Door()
    bodies.wait_at_door.enqueue("d")
    tick_until(driver, lambda: bodies.seen)
    driver.stop()
    driver.stop()
    driver.drain()
    assert driver.in_flight == 1
    bodies.doors["d"].set()
    wait_for(lambda: driver.in_flight == 0)


def test_a_loop_begins_again_after_it_was_closed(driver: Driver, jobs):
    first = bodies.name_thread.enqueue(1)
    run_all(driver)
    driver.close()
    wait_for(lambda: driver._loop_seats._thread is None)
    second = bodies.name_thread.enqueue(2)
    run_all(driver)
    assert states(jobs, [first, second]) == [State.SUCCESS] * 2


def test_a_body_that_blocks_the_loop_is_named_while_the_heartbeat_goes_on(driver: Driver, events, jobs, clock):
    bodies.gates["g"] = threading.Event()
    job = bodies.block_the_loop.enqueue("g")
    tick_until(driver, lambda: bodies.seen)
    watch = LoopWatch(driver._loop_seats, driver._native, driver._announce, blocked_after=0)
    for _ in range(3):
        watch.look()
    (event,) = events.of(What.LOOP_BLOCKED)
    assert (event.job_id, event.fn_path) == (job.id, "tests.app.jobs.block_the_loop")
    assert "tests/app/jobs.py:" in event.text
    clock.advance(20)
    driver.beat()
    assert jobs.get(job.id).lease_expires_at == clock.now() + driver.config.lease
    bodies.gates["g"].set()
    wait_for(lambda: events.of(What.LOOP_BACK))
    watch.look()
    run_all(driver)
    assert len(events.of(What.LOOP_BLOCKED)) == 1


@pytest.mark.parametrize("flood", ["async", "threads"])
def test_a_flood_of_one_kind_leaves_the_seats_of_the_other_to_other_queues(make_driver, store, jobs, flood):
    driver = make_driver(own_seats=True, threads=2, async_jobs=2)
    bodies.doors["d"], bodies.gates["d"] = bodies.Door(), threading.Event()
    long, other = (bodies.wait_at_door, bodies.tell) if flood == "async" else (bodies.wait_at, bodies.once_async)
    flooding = [long.using(queue="flood").enqueue("d") for _ in range(50)]
    tick_until(driver, lambda: len(bodies.seen) == 2)
    others = [other.enqueue(mark) for mark in range(20)]
    tick_until(driver, lambda: states(jobs, others) == [State.SUCCESS] * 20)
    assert states(jobs, flooding).count(State.IN_PROGRESS) == 2
    # What was claimed without a seat for it was learned from, not done again and again.
    assert store.calls.count("release") <= 2
    before = store.calls.count("release")
    for _ in range(50):
        driver.tick()
    assert store.calls.count("release") == before


def test_a_process_without_threads_leaves_plain_functions_to_others(make_driver, store, jobs):
    driver = make_driver(own_seats=True, threads=0, async_jobs=2)
    plain = [bodies.tell.enqueue(mark) for mark in range(5)]
    native = [bodies.name_thread.using(queue="async").enqueue(mark) for mark in range(5)]
    tick_until(driver, lambda: states(jobs, native) == [State.SUCCESS] * 5)
    for _ in range(50):
        driver.tick()
    assert states(jobs, plain) == [State.PENDING] * 5
    assert store.calls.count("release") <= 2


def test_without_async_seats_a_thread_runs_async_bodies(make_driver, jobs):
    driver = make_driver(own_seats=True, threads=1, async_jobs=0)
    job = bodies.name_thread.enqueue("a")
    run_all(driver)
    assert bodies.seen[0][1] == "helisched-seat-1"
    assert jobs.get(job.id).state == State.SUCCESS


def test_without_any_seat_nothing_is_claimed(make_driver, store):
    driver = make_driver(own_seats=True, threads=0, async_jobs=0)
    bodies.name_thread.enqueue("a")
    assert driver.tick().claimed == 0
    assert not driver.has_seats
    assert "claim" not in store.calls


def test_a_job_canceled_while_it_waits_for_the_loop_never_begins(make_driver, jobs):
    driver = make_driver(own_seats=True, threads=0, async_jobs=1)
    bodies.gates["g"] = threading.Event()
    bodies.block_the_loop.enqueue("g")
    tick_until(driver, lambda: bodies.seen)
    job = bodies.once_async.enqueue("never")
    (claim,) = jobs.claim(worker_id="worker-0", limit=1, lease=driver.config.lease)
    held = driver._held.add(claim)
    driver._loop_seats.start(held)
    scheduler.cancel(job)
    driver.beat()
    bodies.gates["g"].set()
    run_all(driver)
    assert jobs.get(job.id).state == State.CANCELED
    assert "never" not in bodies.seen
    assert jobs.list(JobFilter(states=["in_progress"])) == []
