"""While jobs are many, a pass claims and leaves the rest for a moment; nothing waits longer than that."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched.driver import InlineSeats, haste
from django_helisched.driver.held import Held
from django_helisched.stores.base import EVERY_QUEUE
from tests.app import jobs as bodies
from tests.driver.conftest import LEASE

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.stores.base import QueueFilter
    from django_helisched.testing.clock import ManualClock

LOOKS = {"admit", "next_due_at", "claim"}


class Elapsed:
    """The steady clock of haste, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(autouse=True)
def elapsed(monkeypatch: pytest.MonkeyPatch) -> Elapsed:
    clock = Elapsed()
    monkeypatch.setattr(haste, "elapsed", clock)
    return clock


@pytest.fixture
def driver(make_driver: Any) -> Driver:
    """Give a driver that takes two jobs in a pass, and is hungry after one."""
    driver = make_driver(seats=InlineSeats(2))
    for mark in range(20):
        bodies.note.enqueue(mark)
    driver.tick()
    return driver


def asked(driver: Driver, store: Any) -> list[str]:
    """Return what one turn of the loop asks the job store."""
    store.calls.clear()
    driver._turn()
    return [verb for verb in store.calls if verb in LOOKS]


def test_a_hungry_driver_only_claims_for_a_moment(driver: Driver, store, elapsed: Elapsed):
    begun = len(bodies.seen)
    assert asked(driver, store) == ["claim"]
    assert len(bodies.seen) == begun + 2
    elapsed.seconds += 1
    assert asked(driver, store)[:2] == ["admit", "next_due_at"]


def test_the_loop_comes_back_for_the_whole_look(driver: Driver, clock: ManualClock):
    driver._turn()
    assert driver._look is not None
    assert min(moment for moment in driver._look.due if moment) == clock.now() + timedelta(seconds=haste.WHOLE_EVERY)


def test_what_is_stored_while_a_driver_is_idle_is_claimed_before_anything_else_is_asked(driver: Driver, store):
    while asked(driver, store)[-1] != "next_due_at":
        pass
    bodies.note.enqueue("late")
    driver.wake()
    assert asked(driver, store)[0] == "claim"
    assert bodies.seen[-1] == "late"


def test_an_idle_driver_claims_once_from_all_queues(
    make_driver: Any, store, jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = make_driver(own_seats=True, threads=1, async_jobs=100)
    bodies.note.using(queue="known").enqueue("first")
    driver.tick()
    while driver.in_flight or asked(driver, store)[-1:] != ["next_due_at"]:
        pass
    queues: list[QueueFilter] = []
    claim = jobs.claim

    def noted(**asked: Any) -> Any:
        queues.append(asked["queues"])
        return claim(**asked)

    monkeypatch.setattr(jobs, "claim", noted)
    bodies.note.using(queue="not known").enqueue("late")
    driver.wake()
    driver._turn()
    assert queues[0] == EVERY_QUEUE
    while driver.in_flight:
        driver._turn()
    assert bodies.seen[-1] == "late"


def test_a_claim_that_leaves_room_is_followed_by_a_whole_look(driver: Driver, store):
    while len(bodies.seen) < 20:
        assert asked(driver, store) == ["claim"]
    assert asked(driver, store)[:2] == ["claim", "admit"]


def test_an_unwoken_driver_that_is_not_hungry_looks_at_everything(driver: Driver, store):
    while len(bodies.seen) < 20:
        driver.tick()
    driver.tick()
    assert asked(driver, store)[0] == "admit"


def test_a_known_instant_is_not_missed_for_haste(driver: Driver, store, clock: ManualClock):
    assert driver._look is not None
    known = driver._sweeping.next_at
    assert known is not None
    clock.advance((known - clock.now()).total_seconds())
    assert asked(driver, store)[0] == "admit"


def test_whoever_waits_for_a_slot_that_this_process_frees_is_let_out_at_once(make_driver, store):
    driver = make_driver(seats=InlineSeats(2))
    for mark in range(6):
        bodies.narrow.enqueue(mark)
        bodies.note.enqueue(mark)
    driver.tick()
    while len(bodies.seen) < 12:
        assert "admit" in asked(driver, store)


def test_a_driver_that_has_had_its_tasks_claims_no_more_in_haste(make_driver):
    driver = make_driver(seats=InlineSeats(2), max_tasks=3)
    for mark in range(6):
        bodies.note.enqueue(mark)
    driver.tick()
    driver._turn()
    assert (len(bodies.seen), driver.is_stopping) == (3, True)


def test_a_driver_that_stops_claims_nothing_in_haste(driver: Driver, store):
    driver.stop()
    assert "claim" not in asked(driver, store)


def rings_after(driver: Driver, jobs: Any, function: Any) -> bool:
    """Tell whether the end of a job makes the loop look once more."""
    job = function.enqueue("ends")
    jobs.admit()
    (claim,) = jobs.claim(worker_id=driver.config.worker_id, limit=1, lease=LEASE)
    assert claim.id == job.id
    driver._wakeup.clear()
    driver._wrote([Held(claim)])
    return driver._wakeup.wait(0)


def test_only_an_end_that_lets_out_others_makes_the_loop_look(make_driver, jobs):
    driver = make_driver()
    assert not rings_after(driver, jobs, bodies.note)
    assert not driver._claiming.has_turns
    assert rings_after(driver, jobs, bodies.narrow)
    assert driver._claiming.has_turns
