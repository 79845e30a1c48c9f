"""One pass after another, with a clock that a test moves."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from django_helisched import scheduler
from django_helisched.driver import InlineSeats, ThreadSeats, Tick
from django_helisched.driver.events import What
from django_helisched.jobs.job import JobSnapshot, State
from django_helisched.stores.base import CLAIM_LIMIT, JobFilter, QueueFilter
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.stores.memory import MemoryJobStore


def all_jobs(jobs: MemoryJobStore) -> list[JobSnapshot]:
    return list(reversed(jobs.list(JobFilter())))


def test_a_due_job_runs_and_is_settled(driver: Driver, jobs: MemoryJobStore):
    job = bodies.note.enqueue("a")
    assert driver.tick() == Tick(fired=0, swept=0, claimed=1)
    assert bodies.seen == ["a"]
    row = jobs.get(job.id)
    assert row is not None
    assert row.state == State.SUCCESS
    (attempt,) = jobs.attempts_of(job.id)
    assert (attempt.number, attempt.outcome, attempt.result, attempt.worker_id) == (1, "success", "a", "worker-0")


def test_a_job_is_not_run_before_it_is_due(driver: Driver, clock):
    bodies.note.run_after(10, "later")
    assert driver.tick().claimed == 0
    clock.advance(9.999)
    assert driver.tick().claimed == 0
    clock.advance(0.001)
    assert driver.tick().claimed == 1


def test_one_tick_takes_what_fits_into_the_free_seats(make_driver):
    bodies.gates["g"] = threading.Event()
    driver = make_driver(seats=ThreadSeats(3))
    for _ in range(10):
        bodies.wait_at.enqueue("g")
    assert driver.tick().claimed == 3
    assert driver.in_flight == 3
    assert driver.tick().claimed == 0


def test_every_eighth_claim_of_a_driver_goes_by_age_alone(make_driver):
    driver = make_driver(seats=InlineSeats(1))
    bodies.note.using(priority=-100).enqueue("patient")
    for number in range(20):
        bodies.note.using(priority=100).enqueue(number)
    while "patient" not in bodies.seen:
        assert driver.tick().claimed
    assert bodies.seen == [*range(7), "patient"]


def test_queues_take_turns_from_claim_to_claim(make_driver):
    driver = make_driver(seats=InlineSeats(1))
    for queue in ("a", "b"):
        for _ in range(3):
            bodies.note.using(queue=queue).enqueue(queue)
    while driver.tick().claimed:
        pass
    assert bodies.seen == ["a", "b", "a", "b", "a", "b"]


def test_a_full_batch_looks_again_at_once(make_driver):
    driver = make_driver(seats=InlineSeats(2 * CLAIM_LIMIT))
    for mark in range(CLAIM_LIMIT + 36):
        bodies.note.enqueue(mark)
    assert driver.tick().claimed == CLAIM_LIMIT
    assert driver._look.again
    assert driver.tick().claimed == 36
    assert not driver._look.again


def test_with_all_seats_taken_the_store_is_not_asked_for_jobs(make_driver, store):
    bodies.gates["g"] = threading.Event()
    driver = make_driver(seats=ThreadSeats(1))
    bodies.wait_at.enqueue("g")
    driver.tick()
    store.calls.clear()
    driver.tick()
    assert "claim" not in store.calls
    assert "next_due_at" not in store.calls


def test_a_driver_without_seats_fires_and_sweeps_but_claims_nothing(make_driver, store):
    driver = make_driver(seats=ThreadSeats(0))
    bodies.note.enqueue("a")
    assert driver.tick() == Tick()
    assert "claim" not in store.calls


def test_an_idle_tick_asks_three_questions_and_writes_nothing(driver: Driver, store, cron_store):
    driver.tick()
    store.calls.clear()
    cron_store.calls.clear()
    driver.tick()
    assert [verb for verb in store.calls if verb != "now"] == ["admit", "next_due_at"]
    assert cron_store.calls == ["next_due_at"]


def test_a_job_enqueued_by_a_job_runs_in_the_same_tick(driver: Driver):
    bodies.enqueue_note.enqueue("child")
    assert driver.tick().claimed == 2
    assert bodies.seen == [("parent", "child"), "child"]


def test_a_wake_during_a_pass_is_remembered(make_driver):
    driver = make_driver(seats=InlineSeats(1))
    for mark in "abc":
        bodies.note.enqueue(mark)
    bodies.seen.clear()
    observed: list[bool] = []

    def wake(event: Any) -> None:
        if event.what is What.JOB_STARTED and not observed:
            observed.append(True)
            woken.wake()

    woken = make_driver(seats=InlineSeats(1), observe=wake)
    assert woken.tick().claimed == 2
    assert driver.tick().claimed == 1


def test_a_chain_of_jobs_does_not_keep_one_tick_for_ever(driver: Driver):
    bodies.enqueue_itself.enqueue()
    assert driver.tick().claimed == 2
    assert driver.tick().claimed == 2


def test_two_callers_make_one_pass_at_a_time_and_the_second_sees_what_was_due_when_it_called(make_driver):
    bodies.gates["g"] = threading.Event()
    entered = threading.Event()
    driver = make_driver(
        seats=InlineSeats(1), observe=lambda event: entered.set() if event.what is What.JOB_STARTED else None
    )
    bodies.wait_at.enqueue("g")
    first = threading.Thread(target=driver.tick)
    first.start()
    assert entered.wait(10)
    job = bodies.note.enqueue("due when the second calls")
    second = threading.Thread(target=driver.tick)
    second.start()
    assert second.is_alive()
    bodies.gates["g"].set()
    first.join(10)
    second.join(10)
    assert driver.jobs.get(job.id).state == State.SUCCESS


def test_wake_returns_at_once_while_a_pass_runs(make_driver):
    bodies.gates["g"] = threading.Event()
    entered = threading.Event()
    driver = make_driver(observe=lambda event: entered.set() if event.what is What.JOB_STARTED else None)
    bodies.wait_at.enqueue("g")
    thread = threading.Thread(target=driver.tick)
    thread.start()
    assert entered.wait(10)
    driver.wake()
    assert thread.is_alive()
    bodies.gates["g"].set()
    thread.join(10)


def test_a_tick_after_a_failed_one_works(driver: Driver, store):
    bodies.note.enqueue("a")
    store.fail("claim", OperationalError("gone"))
    with pytest.raises(OperationalError):
        driver.tick()
    assert driver.tick().claimed == 1


def test_a_function_that_this_code_does_not_know_is_held_and_the_others_go_on(driver: Driver, jobs, events):
    job = bodies.note.enqueue("unknown")
    jobs.rows.tables.put(replace(jobs.get(job.id), fn_path="shop.jobs.old_name"))
    for mark in range(5):
        bodies.note.enqueue(mark)
    assert driver.tick().claimed == 5
    row = jobs.get(job.id)
    assert (row.state, row.hold, row.attempts, row.attempt_count) == (State.PENDING, "unknown_function", 0, 0)
    (event,) = events.of(What.JOB_HELD)
    assert "shop.jobs.old_name" in event.text
    assert 'aliases=["shop.jobs.old_name"]' in event.text


def test_an_alias_runs_what_was_stored_under_an_older_path(driver: Driver, jobs):
    from django_helisched.functions import registry

    job = bodies.note.enqueue("moved")
    jobs.rows.tables.put(replace(jobs.get(job.id), fn_path="tests.app.old.note"))
    registry._aliases["tests.app.old.note"] = bodies.note
    try:
        driver.tick()
    finally:
        del registry._aliases["tests.app.old.note"]
    assert bodies.seen == ["moved"]


def test_only_the_served_queues_are_claimed_from(make_driver):
    driver = make_driver(queues=QueueFilter(include=("mail*",), exclude=("mail-slow",)))
    for queue in ("mail", "mail-slow", "default", "mail-fast"):
        bodies.note.using(queue=queue).enqueue(queue)
    driver.tick()
    assert sorted(bodies.seen) == ["mail", "mail-fast"]


def test_max_tasks_bounds_what_is_started_and_then_stops(make_driver):
    driver = make_driver(max_tasks=3)
    for mark in range(5):
        bodies.note.enqueue(mark)
    assert driver.tick().claimed == 3
    assert driver.is_stopping
    assert driver.tick().claimed == 0


def test_a_canceled_job_is_not_claimed(driver: Driver):
    job = bodies.note.enqueue("a")
    scheduler.cancel(job)
    assert driver.tick().claimed == 0
    assert bodies.seen == []


def test_an_observer_that_raises_changes_nothing(make_driver, jobs):
    def observe(event: Any) -> None:
        raise SystemExit(4)

    driver = make_driver(observe=observe)
    job = bodies.note.enqueue("a")
    driver.tick()
    assert jobs.get(job.id).state == State.SUCCESS
