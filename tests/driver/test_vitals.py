"""Whether a driver lives and takes jobs: what its loops leave behind, and what a probe is told."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from django_helisched.driver.config import DriverConfig
from django_helisched.driver.events import Announcer, What
from django_helisched.driver.outage import Outage
from django_helisched.driver.seats import ThreadSeats
from django_helisched.driver.vitals import Vitals, longest_silence
from tests.app import jobs as bodies
from tests.crash.fleet import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_helisched.driver import Driver


class Ahead:
    """A clock that a test sets ahead of the real one."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return monotonic() + self.seconds


@pytest.fixture
def clock_ahead() -> Ahead:
    return Ahead()


@pytest.fixture
def loops() -> dict[str, Outage]:
    announce = Announcer(lambda _: None)
    return {name: Outage(announce, What.DATABASE_LOST, What.DATABASE_BACK) for name in ("loop", "heartbeat")}


@pytest.fixture
def vitals(loops: dict[str, Outage], clock_ahead: Ahead) -> Vitals:
    vitals = Vitals(loops, 90.0, now=clock_ahead)
    vitals.is_booted = True
    return vitals


def told(vitals: Vitals, *, is_stopping: bool = False) -> tuple[bool, bool, str]:
    status = vitals.status(is_stopping=is_stopping, in_flight=1, seats=4)
    return status.is_live, status.is_ready, status.text


def test_it_starts_and_then_is_ready(vitals: Vitals):
    vitals.is_booted = False
    assert told(vitals) == (True, False, "starting")
    vitals.is_booted = True
    assert told(vitals) == (True, True, "ready")


def test_a_lost_database_is_no_reason_to_end_the_process(vitals: Vitals, loops: dict[str, Outage]):
    for outage in loops.values():
        outage.failed(OperationalError("gone"))
        assert told(vitals) == (True, False, "the database does not answer")
        outage.passed()
        assert told(vitals)[1]


def test_who_drains_lives_and_takes_nothing_more(vitals: Vitals):
    assert told(vitals, is_stopping=True) == (True, False, "finishing what runs")


@pytest.mark.parametrize("wedged", ["loop", "heartbeat"])
def test_a_loop_that_does_not_move_is_wedged_and_recovers_when_it_moves(
    vitals: Vitals, loops: dict[str, Outage], clock_ahead: Ahead, wedged: str
):
    clock_ahead.seconds = 89.0
    assert told(vitals)[0]
    clock_ahead.seconds = 91.0
    for name, outage in loops.items():
        if name != wedged:
            outage.moved_at = clock_ahead()
    assert told(vitals) == (False, False, f"the {wedged} has not moved for 91 s")
    loops[wedged].moved_at = clock_ahead()
    assert told(vitals)[0]


def test_a_try_that_fails_is_a_move_too(loops: dict[str, Outage]):
    outage = loops["loop"]
    for say in (lambda: outage.failed(OperationalError("gone")), outage.passed, outage.moved):
        outage.moved_at = 0.0
        say()
        assert outage.moved_at > 0.0


@pytest.mark.parametrize(
    ("seconds", "longest"),
    [
        ({"lease": 30, "sweep": 30}, 90.0),
        ({"lease": 0.1, "sweep": 0.1}, 5.0),
        ({"lease": 1, "sweep": 1, "poll_max": 60}, 180.0),
        ({"lease": 1, "sweep": 100, "poll_net": 40}, 120.0),
        ({"lease": 1, "sweep": 10, "poll_net": 40}, 30.0),
    ],
)
def test_the_longest_silence_grows_with_what_a_loop_may_wait_for(seconds: dict[str, float], longest: float):
    given: dict[str, Any] = {name: timedelta(seconds=value) for name, value in seconds.items()}
    config = DriverConfig(**given)
    assert longest_silence(config) == longest


def has_moved(loop: Outage, before: float) -> bool:
    return loop.moved_at > before


@contextmanager
def running(driver: Driver) -> Iterator[None]:
    thread = threading.Thread(target=driver.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        for gate in bodies.gates.values():
            gate.set()
        if not driver.is_stopping:
            driver.stop()
        thread.join()


def test_a_job_that_takes_long_keeps_no_loop_from_moving(make_driver: Any):
    pace = {"lease": timedelta(seconds=0.3), "poll_max": timedelta(seconds=0.02)}
    driver = make_driver(seats=ThreadSeats(1), **pace)
    bodies.gates["long"] = threading.Event()
    bodies.wait_at.enqueue("long")
    with running(driver):
        wait_until(lambda: driver.in_flight == 1, "the job runs")
        for loop in driver._vitals._loops.values():
            wait_until(partial(has_moved, loop, loop.moved_at), "the loop moves")
        assert driver.status().is_ready
        assert driver.status().in_flight == 1
        driver.stop()
        wait_until(lambda: driver.status().text == "finishing what runs", "it drains")
        loop = driver._vitals._loops["loop"]
        wait_until(partial(has_moved, loop, loop.moved_at), "the loop moves while it drains")


def test_a_pass_that_hangs_is_told_while_the_heartbeat_goes_on(make_driver: Any, jobs: Any):
    hang, entered = threading.Event(), threading.Event()

    class Hanging:
        def __getattr__(self, verb: str) -> Any:
            if verb == "admit":
                entered.set()
                hang.wait()
            return getattr(jobs, verb)

    driver = make_driver(seats=ThreadSeats(1), lease=timedelta(seconds=0.3), sweep=timedelta(seconds=0.3))
    driver._claiming._jobs = Hanging()
    with running(driver):
        try:
            assert entered.wait(60)
            wait_until(lambda: not driver.status().is_live, "the loop is found wedged")
            assert driver.status().text.startswith("the loop has not moved for")
        finally:
            hang.set()
        wait_until(lambda: driver.status().is_ready, "it goes on")


def test_a_paused_queue_is_told_with_who_and_why_when_it_changes(driver: Driver, jobs: Any, events: Any):
    jobs.pause_queue("mail", by="ada", reason="SMTP down")
    driver.sweep()
    driver.sweep()
    (paused,) = events.of(What.QUEUE_PAUSED)
    assert paused.text == 'The queue "mail" is paused by ada since 2026-03-01 12:00:00 UTC: SMTP down'
    jobs.resume_queue("mail")
    driver.sweep()
    (resumed,) = events.of(What.QUEUE_RESUMED)
    assert resumed.text == 'The queue "mail" is not paused any more.'


def test_a_paused_queue_that_is_not_served_is_no_news(make_driver: Any, jobs: Any, events: Any):
    from django_helisched.stores.base import QueueFilter

    jobs.pause_queue("mail")
    make_driver(queues=QueueFilter(exclude=("mail",))).sweep()
    assert not events.of(What.QUEUE_PAUSED)
