"""Claims ahead of free seats: while jobs are short, never for long, and never to the harm of others."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched.driver import ThreadSeats
from django_helisched.driver.events import What
from django_helisched.driver.look_ahead import LONGEST_WAIT, MOST, WINDOW, LookAhead
from django_helisched.driver.mix import ENOUGH, PROBE, REMEMBERED, Mix, SeatKind
from django_helisched.jobs.job import State
from django_helisched.stores.base import QueueFilter
from django_helisched.stores.clock import elapsed
from tests.app import jobs as bodies
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django_helisched.driver import Driver

LEASE = timedelta(seconds=30)
THREAD, LOOP = SeatKind.THREAD, SeatKind.LOOP
ALL = QueueFilter()


def after(ahead: LookAhead, *seconds: float) -> int:
    """Return the look-ahead after jobs of these lengths."""
    for one in seconds:
        ahead.ended(elapsed() - one)
    return ahead.size()


@pytest.fixture
def driver(make_driver) -> Driver:
    """Give a driver with one thread that trusts its jobs to be short."""
    driver = make_driver(seats=ThreadSeats(1))
    trust(driver)
    return driver


def trust(driver: Driver) -> None:
    after(driver._seating._ahead[THREAD], *[0.0001] * 80)


def tick_until(driver: Driver, condition: Any) -> None:
    def met() -> bool:
        driver.tick()
        return bool(condition())

    wait_for(met)


def states(jobs: Any, made: list[Any]) -> list[str]:
    return [jobs.get(job.id).state for job in made]


def test_nothing_is_claimed_ahead_before_jobs_were_seen_to_be_short():
    ahead = LookAhead(4, LEASE)
    assert ahead.size() == 0
    assert after(ahead, *[0.0001] * 100) == MOST


def test_the_look_ahead_is_what_the_seats_get_through_in_a_moment():
    assert after(LookAhead(4, LEASE), *[0.01] * 100) == pytest.approx(4 * WINDOW / 0.01, abs=1)
    assert after(LookAhead(100, LEASE), *[0.3] * 100) == 0  # although many seats get through some
    assert after(LookAhead(4, LEASE), *[0.2] * 100) == 0


def test_one_long_job_ends_the_look_ahead():
    ahead = LookAhead(4, LEASE)
    assert after(ahead, *[0.0001] * 100) == MOST
    assert after(ahead, 1.0) == 0


def test_of_short_jobs_the_mean_counts():
    assert after(LookAhead(4, LEASE), *([*[0.001] * 5, 0.04] * 40)) > 35


def test_claims_wait_half_a_second_at_most_and_a_quarter_of_a_short_lease():
    now = elapsed()
    assert not LookAhead(1, LEASE).is_stuck(now)
    assert LookAhead(1, LEASE).is_stuck(now - LONGEST_WAIT - 0.01)
    assert LookAhead(1, timedelta(seconds=1)).is_stuck(now - 0.26)


def test_a_queue_that_moves_slowly_is_late_too():
    ahead = LookAhead(1, LEASE)
    ahead.began(elapsed() - 0.1)
    assert not ahead.is_stuck(elapsed())
    ahead.began(elapsed() - LONGEST_WAIT - 0.01)
    assert ahead.is_stuck(elapsed())
    ahead.give_up()
    assert not ahead.is_stuck(elapsed())


def test_short_jobs_are_claimed_ahead_of_the_free_seats(driver: Driver, jobs):
    bodies.gates["g"] = threading.Event()
    for _ in range(10):
        bodies.wait_at.enqueue("g")
    assert driver.tick().claimed == 10
    assert driver.in_flight == 10
    bodies.gates["g"].set()
    wait_for(lambda: driver.in_flight == 0)


def test_a_claim_waits_until_it_is_worth_a_round_trip(make_driver, jobs):
    driver = make_driver(seats=ThreadSeats(1))
    assert after(driver._seating._ahead[THREAD], *[0.0015] * 200) == pytest.approx(66, abs=5)
    bodies.gates["g"] = threading.Event()
    made = [bodies.wait_at.enqueue("g") for _ in range(30)]
    assert driver.tick().claimed == 30
    made += [bodies.wait_at.enqueue("g") for _ in range(30)]
    # There is room for all of them: but the seats have enough, and ring when much of it has begun.
    assert driver.tick().claimed == 0
    bodies.gates["g"].set()
    tick_until(driver, lambda: states(jobs, made) == [State.SUCCESS] * 60)


def test_what_waits_behind_a_long_job_is_given_back(driver: Driver, jobs, events):
    bodies.gates["g"] = threading.Event()
    long = bodies.wait_at.enqueue("g")
    others = [bodies.tell.enqueue(mark) for mark in range(10)]
    assert driver.tick().claimed == 11
    wait_for(lambda: bodies.seen)
    tick_until(driver, lambda: states(jobs, others) == [State.PENDING] * 10)
    assert len(events.of(What.JOB_RELEASED)) == 10
    assert jobs.get(long.id).state == State.IN_PROGRESS
    assert [jobs.get(job.id).losses for job in others] == [0] * 10
    assert driver.tick().claimed == 0
    bodies.gates["g"].set()
    tick_until(driver, lambda: states(jobs, others) == [State.SUCCESS] * 10)
    assert all(len(jobs.attempts_of(job.id)) == 1 for job in others)


def test_a_first_stop_gives_back_what_waits_and_finishes_what_runs(driver: Driver, jobs):
    bodies.gates["g"] = threading.Event()
    long = bodies.wait_at.enqueue("g")
    others = [bodies.once.enqueue(mark) for mark in range(5)]
    driver.tick()
    wait_for(lambda: bodies.seen)
    drained = threading.Thread(target=driver.drain)
    drained.start()
    wait_for(lambda: states(jobs, others) == [State.PENDING] * 5)
    assert drained.is_alive()
    bodies.gates["g"].set()
    drained.join(20)
    assert jobs.get(long.id).state == State.SUCCESS
    assert bodies.seen == ["at g"]


def test_what_waits_is_renewed_like_what_runs(driver: Driver, jobs, clock):
    bodies.gates["g"] = threading.Event()
    made = [bodies.wait_at.enqueue("g") for _ in range(5)]
    driver.tick()
    clock.advance(25)
    driver.beat()
    assert {jobs.get(job.id).lease_expires_at for job in made} == {clock.now() + LEASE}


def test_beside_a_job_that_took_a_worker_down_nothing_waits(driver: Driver, jobs):
    bodies.gates["g"] = threading.Event()
    made = [bodies.wait_at.enqueue("g") for _ in range(8)]
    suspect = made[0]
    jobs.rows.tables.put(replace(jobs.get(suspect.id), losses=1))
    assert driver.tick().claimed == 1
    assert states(jobs, made) == [State.IN_PROGRESS] + [State.PENDING] * 7
    bodies.gates["g"].set()
    tick_until(driver, lambda: states(jobs, made) == [State.SUCCESS] * 8)


def test_what_waits_already_is_given_back_before_a_suspect_begins(driver: Driver, jobs):
    bodies.gates["g"] = threading.Event()
    first = bodies.wait_at.enqueue("g")
    driver.tick()
    wait_for(lambda: bodies.seen)
    waiting = [bodies.tell.enqueue(mark) for mark in range(3)]
    driver.tick()
    assert states(jobs, waiting) == [State.IN_PROGRESS] * 3
    suspect = bodies.tell.enqueue("suspect")
    jobs.rows.tables.put(replace(jobs.get(suspect.id), losses=1))
    driver.tick()
    assert states(jobs, [first, *waiting, suspect]) == [State.IN_PROGRESS] + [State.PENDING] * 4
    bodies.gates["g"].set()
    tick_until(driver, lambda: states(jobs, [first, *waiting, suspect]) == [State.SUCCESS] * 5)


def test_max_tasks_counts_what_was_given_back_as_not_started(make_driver, jobs):
    driver = make_driver(seats=ThreadSeats(1), max_tasks=3)
    trust(driver)
    bodies.gates["g"] = threading.Event()
    made = [bodies.wait_at.enqueue("g") for _ in range(6)]
    driver.tick()
    assert driver.in_flight == 3
    bodies.gates["g"].set()
    driver.run()
    assert states(jobs, made).count(State.SUCCESS) == 3


def looks(
    mix: Mix, room: Mapping[SeatKind, int], now: float = 0.0
) -> list[tuple[tuple[str, ...], tuple[str, ...], int]]:
    return [(queues.include, queues.exclude, limit) for queues, limit in mix.looks(ALL, room, now)]


def test_with_room_for_all_kinds_one_claim_does():
    assert looks(Mix(), {THREAD: ENOUGH, LOOP: ENOUGH + 1}) == [((), (), ENOUGH)]
    assert looks(Mix(), {THREAD: 3}) == [((), (), 3)]
    assert looks(Mix(), {THREAD: 0, LOOP: 0}) == []


def test_a_queue_is_claimed_from_by_the_room_of_the_kinds_that_were_seen_in_it():
    mix = Mix()
    for queue, kind in (("plain", THREAD), ("native", LOOP), ("mixed", THREAD), ("mixed", LOOP)):
        mix.saw(queue, kind, 0.0)
    known = ("plain", "native", "mixed")
    assert looks(mix, {THREAD: 4, LOOP: 30}) == [
        (("plain",), (), 4),
        (("native",), (), 30),
        (("mixed",), (), 4),
        ((), known, 4),
    ]
    assert looks(mix, {THREAD: 4, LOOP: 0}) == [(("plain",), (), 4), ((), known, 4)]


def test_of_a_queue_that_is_not_known_few_are_taken_while_one_kind_is_full():
    assert looks(Mix(), {THREAD: 0, LOOP: 30}) == [((), (), PROBE)]
    assert looks(Mix(), {THREAD: 2, LOOP: 0}) == [((), (), 2)]


def test_what_was_seen_in_a_queue_is_forgotten():
    mix = Mix()
    mix.saw("q", LOOP, 0.0)
    assert looks(mix, {THREAD: 4, LOOP: 0}, REMEMBERED - 1) == [((), ("q",), 4)]
    assert looks(mix, {THREAD: 4, LOOP: 0}, REMEMBERED) == [((), (), 4)]


def test_the_name_of_a_queue_is_no_pattern():
    mix = Mix()
    mix.saw("q[1]*", LOOP, 0.0)
    ((queues, _), (others, _)) = mix.looks(ALL, {THREAD: 1, LOOP: 3}, 0.0)
    assert (queues.admits("q[1]*"), queues.admits("q1x"), others.admits("q[1]*")) == (True, False, False)


def test_without_a_probe_only_known_queues_are_asked_until_there_is_room_for_anything():
    mix = Mix()
    mix.saw("mail", LOOP, 0.0)
    assert mix.looks(ALL, {THREAD: 1, LOOP: 100}, 1.0, probe=False) == [(QueueFilter(include=("mail",)), 100)]
    assert mix.looks(ALL, {THREAD: ENOUGH, LOOP: ENOUGH}, 1.0, probe=False) == [(ALL, ENOUGH)]


def test_where_few_are_expected_one_claim_takes_what_finds_room_whatever_it_is():
    mix = Mix()
    mix.saw("mail", LOOP, 0.0)
    assert mix.looks(ALL, {THREAD: 1, LOOP: 100}, 1.0, few=True) == [(ALL, 1)]
    assert mix.looks(ALL, {THREAD: 0, LOOP: 100}, 1.0, few=True) == mix.looks(ALL, {THREAD: 0, LOOP: 100}, 1.0)


def test_where_no_queue_could_be_given_much_more_one_claim_from_all_of_them_does():
    mix = Mix()
    mix.saw("plain", THREAD, 0.0)
    assert looks(mix, {THREAD: 30, LOOP: 100}) == [((), (), 30)]
    assert looks(mix, {THREAD: 45, LOOP: 30}) == [((), (), 30)]
    # Here more is to be had by itself.
    assert looks(mix, {THREAD: 46, LOOP: 30}) == [(("plain",), (), 46), ((), ("plain",), 30)]
    assert looks(mix, {THREAD: 30, LOOP: 0}) == [(("plain",), (), 30), ((), ("plain",), PROBE)]
    mix.saw("native", LOOP, 0.0)
    assert len(looks(mix, {THREAD: 30, LOOP: 100})) == 3
    assert looks(mix, {THREAD: 30, LOOP: 30}) == [((), (), 30)]


def test_where_only_one_kind_was_seen_nothing_is_asked_while_that_one_has_more_room_soon():
    mix = Mix()
    mix.saw("plain", THREAD, 0.0)
    room, soon = {THREAD: 2, LOOP: 100}, frozenset({THREAD})
    assert mix.looks(ALL, room, 1.0, soon=soon) == []
    assert mix.looks(ALL, room, 1.0) == [(ALL, 2)]
    # Nothing is known any more: whatever there may be is asked for.
    assert mix.looks(ALL, room, REMEMBERED + 1, soon=soon) == [(ALL, 2)]


def test_a_kind_that_has_more_room_soon_keeps_no_queue_waiting_but_its_own():
    mix = Mix()
    for queue, kind in (("plain", THREAD), ("native", LOOP), ("mixed", THREAD), ("mixed", LOOP)):
        mix.saw(queue, kind, 0.0)
    room, soon = {THREAD: 2, LOOP: 50}, frozenset({THREAD})
    asked = [(queues.include, limit) for queues, limit in mix.looks(ALL, room, 1.0, soon=soon)]
    # "mixed", and queues of which nothing is known: they must not wait until both have much room at one moment.
    assert asked == [(("native",), 50), (("mixed",), 2), ((), 2)]
    assert mix.looks(ALL, room, 1.0, soon=frozenset({THREAD, LOOP})) == []
    assert mix.looks(ALL, {THREAD: 2, LOOP: 0}, 1.0, soon=soon) == []
