"""The exception of a guard lands in the body, or nowhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from django_helisched.driver.deadline import Guard, Interrupted, OutOfTime, Stop
from django_helisched.stores.clock import elapsed
from tests.driver.test_heartbeat import wait_for

# What a thread calls, and what it then waits for.
Call = tuple[Callable[[], Any], Callable[[], Any]]

ROUNDS = 600
SECONDS = 0.001
HANG = 120.0  # seconds: an end to a test that hangs, and far more than any of them takes


def never(kind: type[Stop]) -> None:
    raise AssertionError(f"it reacted to {kind}")


def call_within(
    seconds: float | None, body: Callable[[], Any], overtime: Callable[[Any], object] = never, grace: float = HANG
) -> Any:
    return Guard(seconds, overtime, grace).call(body)


def nothing() -> None:
    """Wait for nothing."""


def spin_until(end: float) -> str:
    while elapsed() < end:
        pass
    return "done"


def spin_for_ever() -> None:
    while True:
        pass


class Ends:
    """How many bodies ended which way in a thread of their own, and what came through where no body was."""

    def __init__(self) -> None:
        self.counts = {"done": 0, "stopped": 0}
        self.stray: list[BaseException] = []

    def count(self, rounds: Callable[[int], Call], number: int = ROUNDS) -> None:
        """Call what ``rounds(0)``, ``rounds(1)``, ... give, in a thread."""
        thread = threading.Thread(target=self._run, args=(rounds, number))
        thread.start()
        thread.join(HANG)
        assert not thread.is_alive()

    def _run(self, rounds: Callable[[int], Call], number: int) -> None:
        try:
            for each in range(number):
                call, afterwards = rounds(each)
                try:
                    call()
                    way = "done"
                except Stop:
                    way = "stopped"
                # One that comes from here on has come too late.
                afterwards()
                for _ in range(100):
                    self.counts[way] += 0
                self.counts[way] += 1
        except BaseException as error:
            self.stray.append(error)


@pytest.fixture
def ends() -> Ends:
    return Ends()


def test_a_body_that_is_quick_enough_is_left_alone():
    assert call_within(HANG, lambda: "value") == "value"


def test_a_body_without_a_deadline_that_nobody_interrupts_is_left_alone():
    assert call_within(None, lambda: "value") == "value"


def test_a_body_that_is_too_slow_is_stopped():
    with pytest.raises(OutOfTime):
        call_within(0.01, spin_for_ever)


def test_a_body_that_is_asked_to_stop_is_stopped():
    guard = Guard(None, never, HANG)

    def body() -> None:
        asking.start()
        spin_for_ever()

    asking = threading.Thread(target=guard.interrupt)
    with pytest.raises(Interrupted):
        guard.call(body)
    assert guard.has_raised


def test_a_body_that_was_asked_to_stop_before_it_began_is_stopped():
    guard = Guard(HANG, never, HANG)
    guard.interrupt()
    with pytest.raises(Interrupted):
        guard.call(spin_for_ever)


def test_to_ask_a_body_that_has_ended_does_nothing():
    guard = Guard(HANG, never, HANG)
    assert guard.call(lambda: "value") == "value"
    guard.interrupt()
    spin_until(elapsed() + 0.05)
    assert not guard.has_raised


def test_what_the_body_raises_passes_unchanged():
    error = KeyError("mine")

    def body() -> None:
        raise error

    with pytest.raises(KeyError) as raised:
        call_within(HANG, body)
    assert raised.value is error


def test_a_body_that_ends_at_its_deadline_ends_one_way_and_nothing_lands_later(ends: Ends):
    """Bodies that end within a millisecond of their deadline, on either side; a few that surely end one way.

    How many of the close ones are late is the interpreter's affair: it changes threads every 5 ms.
    """

    def round_of(number: int) -> Call:
        if number % 60 == 0:
            return (lambda: call_within(HANG, lambda: "done")), nothing
        if number % 60 == 1:
            return (lambda: call_within(SECONDS, spin_for_ever)), nothing
        offset = (number % 21 - 10) / 10_000
        return (lambda: call_within(SECONDS, lambda: spin_until(elapsed() + SECONDS + offset))), nothing

    ends.count(round_of)
    assert ends.stray == []
    assert sum(ends.counts.values()) == ROUNDS
    assert min(ends.counts.values()) >= ROUNDS // 60


def test_a_body_that_ends_while_it_is_asked_to_stop_ends_one_way_and_nothing_lands_later(ends: Ends):
    guards: list[Guard] = []
    over = threading.Event()

    def ask() -> None:
        asked = 0
        while not over.is_set():
            if asked < len(guards):
                guards[asked].interrupt()
                asked += 1

    def round_of(number: int) -> Call:
        guard = Guard(None, never, HANG)
        guards.append(guard)
        return (lambda: guard.call(lambda: spin_until(elapsed() + (number % 10) / 10_000))), nothing

    asking = threading.Thread(target=ask)
    asking.start()
    ends.count(round_of)
    over.set()
    asking.join(HANG)
    assert ends.stray == []
    assert sum(ends.counts.values()) == ROUNDS


class LateGuard(Guard):
    """A guard that has won against the end of the body, and raises only once that has come."""

    def __init__(self) -> None:
        super().__init__(0.001, never, HANG)
        self.has_won, self.body_ends, self.has_decided = (threading.Event() for _ in range(3))

    def _is_first(self, number: int, who: str) -> bool:
        won = super()._is_first(number, who)
        if who == "guard" and won:
            self.has_won.set()
            assert self.body_ends.wait(HANG)
        return won

    def _raise_unless_handled(self) -> bool:
        goes_on = super()._raise_unless_handled()
        self.has_decided.set()
        return goes_on


def test_an_exception_that_is_on_its_way_when_the_body_ends_lands_inside_or_nowhere(ends: Ends):
    def body(guard: LateGuard) -> None:
        assert guard.has_won.wait(HANG)
        guard.body_ends.set()

    def round_of(_: int) -> Call:
        guard = LateGuard()
        return (lambda: guard.call(lambda: body(guard))), (lambda: guard.has_decided.wait(HANG))

    ends.count(round_of, 50)
    assert ends.stray == []
    assert sum(ends.counts.values()) == 50


def test_a_body_that_swallows_its_deadline_is_reported_once():
    reported: list[type[Stop]] = []

    def spin() -> None:
        # A function of its own: on Python 3.13 the jump of a loop is outside of the try around it.
        while not reported:
            pass

    def body() -> str:
        while not reported:
            try:
                spin()
            except OutOfTime:
                continue
        return "late"

    with pytest.raises(OutOfTime):
        # The one that comes after the report may land in the body, or find it ended.
        raise OutOfTime(call_within(0.01, body, reported.append, grace=0.01))
    assert reported == [OutOfTime]


def test_a_body_that_takes_too_long_to_clean_up_is_reported():
    reported = threading.Event()

    def body() -> None:
        try:
            spin_for_ever()
        finally:
            assert reported.wait(HANG)

    with pytest.raises(OutOfTime):
        call_within(0.01, body, lambda _: reported.set(), grace=0.01)


def test_an_exception_that_was_swallowed_comes_again():
    swallowed: list[int] = []

    def body() -> None:
        while True:
            try:
                spin_for_ever()
            except OutOfTime:
                swallowed.append(1)
                if len(swallowed) == 3:
                    raise

    with pytest.raises(OutOfTime):
        call_within(0.01, body)
    assert len(swallowed) == 3


def test_no_exception_comes_while_the_body_cleans_up_after_the_first():
    def body() -> None:
        try:
            spin_for_ever()
        finally:
            # Three times as long as a body is left before it gets the next one.
            cleaned.append(spin_until(elapsed() + 0.3))

    cleaned: list[str] = []
    with pytest.raises(OutOfTime):
        call_within(0.01, body)
    assert cleaned == ["done"]


class SlowHandler(logging.Handler):
    """A handler in whose middle the body is asked to stop; its lock is every thread's."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self.guard = guard
        self.is_done = False

    def emit(self, record: logging.LogRecord) -> None:
        self.guard.interrupt()
        spin_until(elapsed() + 0.2)
        self.is_done = True


def test_an_exception_waits_until_the_thread_has_left_the_logging_module():
    """There it could leave a handler's lock taken, and whoever logs next in this process would wait for ever."""
    guard = Guard(None, never, HANG)
    handler, logger = SlowHandler(guard), logging.getLogger("tests.driver.deadline")
    logger.addHandler(handler)
    logger.propagate = False

    def body() -> None:
        logger.error("slow")
        spin_for_ever()

    try:
        with pytest.raises(Interrupted):
            guard.call(body)
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
    assert handler.is_done


def test_a_deadline_beyond_what_a_thread_can_wait_is_no_error():
    assert call_within(1e12, lambda: "value") == "value"


def test_no_guard_outlives_its_body():
    def guards() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "helisched-guard"]

    for seconds in (None, HANG, 0.001):
        try:
            call_within(seconds, lambda: spin_until(elapsed() + 0.01))
        except OutOfTime:
            continue
    wait_for(lambda: not guards())
