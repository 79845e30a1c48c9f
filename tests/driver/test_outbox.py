"""The ends of actions are written together, and each as if it were alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DataError, OperationalError

from django_helisched import scheduler
from django_helisched.driver import ThreadSeats, outbox
from django_helisched.driver.events import What
from django_helisched.jobs.job import State
from django_helisched.signals import job_settled
from tests.app import jobs as bodies
from tests.driver.conftest import Flaky
from tests.driver.test_heartbeat import run_all, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_helisched.driver import Driver
    from django_helisched.stores.memory import MemoryJobStore


class Desk(Flaky):
    """A store that shows what is settled together, and may keep a writer waiting or refuse one job."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.batches: list[list[Any]] = []
        self.is_open = threading.Event()
        self.is_open.set()
        self.refuse: Callable[[Any], BaseException | None] = lambda settlement: None

    def settle(self, settlements: Any) -> Any:
        self.batches.append([settlement.claim.id for settlement in settlements])
        assert self.is_open.wait(20)
        for error in filter(None, map(self.refuse, settlements)):
            raise error
        return self._store.settle(settlements)


@pytest.fixture
def store(jobs: MemoryJobStore) -> Desk:
    return Desk(jobs)


@pytest.fixture
def busy(make_driver: Callable[..., Driver], store: Desk) -> Iterator[Driver]:
    """Give a driver with two threads whose first batch is kept waiting."""
    store.is_open.clear()
    yield make_driver(seats=ThreadSeats(2))
    store.is_open.set()


def run_bodies(driver: Driver, count: int) -> None:
    """Tick until so many bodies have left their mark."""

    def ran() -> bool:
        driver.tick()
        return len(bodies.seen) == count

    wait_for(ran)


def test_ends_that_come_while_others_are_written_are_written_together(busy: Driver, store, jobs):
    made = [bodies.tell.enqueue(mark) for mark in range(20)]
    run_bodies(busy, 20)
    wait_for(lambda: store.batches)
    store.is_open.set()
    run_all(busy)
    assert len(store.batches) < 10
    assert sorted(job_id for batch in store.batches for job_id in batch) == sorted(job.id for job in made)
    assert {jobs.get(job.id).state for job in made} == {State.SUCCESS}
    assert all(len(jobs.attempts_of(job.id)) == 1 for job in made)


def test_one_transaction_takes_more_than_it_would_wait_for(busy: Driver, store):
    count = 2 * outbox.FULL + 1
    for mark in range(count):
        bodies.tell.enqueue(mark)
    run_bodies(busy, count)
    wait_for(lambda: store.batches)
    store.is_open.set()
    run_all(busy)
    assert outbox.FULL < max(map(len, store.batches)) <= outbox.MOST


def test_a_seat_is_free_once_its_body_has_ended_and_the_claim_is_held_until_it_is_written(busy: Driver, jobs, clock):
    made = [bodies.tell.enqueue(mark) for mark in range(3)]
    run_bodies(busy, 3)
    assert busy.in_flight == 3
    clock.advance(25)
    busy.beat()
    assert {jobs.get(job.id).lease_expires_at for job in made} == {clock.now() + busy.config.lease}


def test_nobody_hears_of_an_end_before_it_is_written(busy: Driver, store, jobs, events):
    heard: list[Any] = []

    def hear(job_id: Any, **_: Any) -> None:
        heard.append(jobs.get(job_id).state)

    job_settled.connect(hear)
    try:
        bodies.tell.enqueue("a")
        run_bodies(busy, 1)
        wait_for(lambda: store.batches)
        assert "job.succeeded" not in events.whats()
        store.is_open.set()
        run_all(busy)
    finally:
        job_settled.disconnect(hear)
    assert heard == [State.SUCCESS]
    assert "job.succeeded" in events.whats()


def test_a_mutation_does_not_wait_for_the_ends_of_actions(busy: Driver, store, jobs):
    bodies.tell.enqueue("a")
    run_bodies(busy, 1)
    wait_for(lambda: store.batches)
    store.settle = jobs.settle
    job = bodies.note.enqueue("b")
    run_bodies(busy, 2)
    wait_for(lambda: jobs.get(job.id).state == State.SUCCESS)
    assert busy.in_flight == 1


@pytest.mark.parametrize("place", [0, 7, 19])
def test_a_row_that_the_database_refuses_stands_alone_in_the_end(busy: Driver, store, jobs, place):
    made = [bodies.tell.enqueue(mark) for mark in range(20)]
    bad = made[place].id
    store.refuse = lambda one: DataError("no") if one.claim.id == bad and one.outcome.result is not None else None
    run_bodies(busy, 20)
    store.is_open.set()
    run_all(busy)
    assert {jobs.get(job.id).state for job in made} == {State.SUCCESS}
    reports = {job.id: jobs.attempts_of(job.id)[0].error for job in made}
    assert [job_id for job_id, error in reports.items() if error] == [bad]
    assert reports[bad] == "what this attempt left could not be stored (DataError)"
    # Halved: not one transaction for each of the others.
    assert len(store.batches) < 20


def test_a_row_that_is_refused_for_ever_is_told_and_costs_the_others_nothing(busy: Driver, store, jobs, events):
    made = [bodies.tell.enqueue(mark) for mark in range(9)]
    bad = made[4].id
    store.refuse = lambda one: DataError("no") if one.claim.id == bad else None
    run_bodies(busy, 9)
    store.is_open.set()
    run_all(busy)
    assert [jobs.get(job.id).state for job in made].count(State.SUCCESS) == 8
    assert [event.job_id for event in events.of(What.JOB_UNSETTLED)] == [bad]


def test_a_row_that_the_database_cannot_take_yet_waits_alone(busy: Driver, store, jobs):
    made = [bodies.tell.enqueue(mark) for mark in range(9)]
    bad, others = made[0].id, made[1:]
    is_locked = threading.Event()
    is_locked.set()
    store.refuse = lambda one: (
        OperationalError("lock wait timeout") if one.claim.id == bad and is_locked.is_set() else None
    )
    run_bodies(busy, 9)
    store.is_open.set()
    wait_for(lambda: all(jobs.get(job.id).state == State.SUCCESS for job in others))
    assert jobs.get(bad).state == State.IN_PROGRESS
    assert busy.in_flight == 1
    is_locked.clear()
    run_all(busy)
    assert [attempt.outcome for attempt in jobs.attempts_of(bad)] == ["success"]


def test_ends_outlast_an_outage(busy: Driver, store, jobs, events):
    made = [bodies.tell.enqueue(mark) for mark in range(9)]
    gone = [OperationalError("gone")] * 3
    store.refuse = lambda one: gone.pop() if gone else None
    run_bodies(busy, 9)
    store.is_open.set()
    run_all(busy)
    assert {jobs.get(job.id).state for job in made} == {State.SUCCESS}
    assert events.of(What.JOB_UNSETTLED) == []


def test_a_cancel_that_comes_while_the_end_waits_makes_the_job_canceled(busy: Driver, store, jobs):
    made = [bodies.tell.using(on_complete=bodies.told).enqueue(mark) for mark in range(5)]
    run_bodies(busy, 5)
    scheduler.cancel(made[2])
    busy.beat()
    store.is_open.set()
    run_bodies(busy, 10)
    run_all(busy)
    states = [jobs.get(job.id).state for job in made]
    assert states == [State.SUCCESS] * 2 + [State.CANCELED] + [State.SUCCESS] * 2
    assert [attempt.outcome for attempt in jobs.attempts_of(made[2].id)] == ["success"]
    assert sorted(kind for _, kind in bodies.seen[5:]) == ["canceled"] + ["success"] * 4


def test_a_claim_that_is_lost_while_its_end_waits_drops_that_end_alone(busy: Driver, store, jobs, events):
    made = [bodies.tell.enqueue(mark) for mark in range(5)]
    run_bodies(busy, 5)
    scheduler.cancel(made[2], force=True)
    store.is_open.set()
    run_all(busy)
    assert [event.job_id for event in events.of(What.JOB_LOST)] == [made[2].id]
    assert [jobs.get(job.id).state for job in made].count(State.SUCCESS) == 4


def test_a_drain_returns_when_every_end_is_written(busy: Driver, store, jobs):
    made = [bodies.tell.enqueue(mark) for mark in range(9)]
    run_bodies(busy, 9)
    drained = threading.Thread(target=busy.drain)
    drained.start()
    assert drained.is_alive()
    store.is_open.set()
    drained.join(20)
    assert not drained.is_alive()
    assert {jobs.get(job.id).state for job in made} == {State.SUCCESS}


def test_a_second_stop_writes_what_has_ended(busy: Driver, store, jobs):
    made = [bodies.tell.enqueue(mark) for mark in range(9)]
    run_bodies(busy, 9)
    store.is_open.set()
    busy.stop()
    busy.stop()
    busy.drain()
    assert {jobs.get(job.id).state for job in made} == {State.SUCCESS}


def test_with_too_many_ends_waiting_nothing_more_is_claimed(busy: Driver, store):
    for mark in range(outbox.ROOM + 20):
        bodies.tell.enqueue(mark)
    wait_for(lambda: busy.tick().claimed == 0 and busy._seats.free() == 2)
    assert busy.tick().claimed == 0
    assert busy.in_flight <= outbox.ROOM + 2
    store.is_open.set()
    run_all(busy)
    assert len(bodies.seen) == outbox.ROOM + 20


def test_a_writer_that_waits_for_one_row_does_not_hold_up_the_ends_that_come_later(busy: Driver, store, jobs, clock):
    first = bodies.tell.enqueue("held")
    run_bodies(busy, 1)
    wait_for(lambda: store.batches)
    held_up, store.is_open = store.is_open, threading.Event()
    store.is_open.set()
    job = bodies.tell.enqueue("later")
    run_bodies(busy, 2)

    def written() -> bool:
        busy.tick()
        return jobs.get(job.id).state == State.SUCCESS

    wait_for(written)
    assert jobs.get(first.id).state == State.IN_PROGRESS
    held_up.set()
    run_all(busy)
    assert jobs.get(first.id).state == State.SUCCESS


def test_a_driver_that_was_closed_still_writes_what_ends_later(make_driver, store, jobs):
    driver = make_driver(seats=ThreadSeats(1))
    bodies.gates["g"] = threading.Event()
    job = bodies.wait_at.enqueue("g")
    driver.tick()
    wait_for(lambda: bodies.seen)
    driver.close()
    bodies.gates["g"].set()
    wait_for(lambda: jobs.get(job.id).state == State.SUCCESS)
