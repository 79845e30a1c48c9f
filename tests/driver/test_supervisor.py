"""What a supervisor decides when a process ends; real processes are killed in tests/crash/test_supervisor.py."""

from __future__ import annotations

import signal
import socket
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_helisched.driver.child import words_of
from django_helisched.driver.events import Announcer, What
from django_helisched.driver.orders import Link
from django_helisched.driver.supervising import command_line
from django_helisched.driver.supervisor import LONGEST_DELAY, STABLE, Slot, Supervisor, delay_after
from django_helisched.driver.vitals import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READY = Status(is_ready=True, was_ready=True, text="ready", in_flight=1, seats=4)
SILENCE = 90.0


class Fake:
    """A child that a test lets end."""

    pid = 4711

    def __init__(self, command: Sequence[str], number: int, now: float, status: Status = READY) -> None:
        self.started_at = self.heard_at = now
        self.status = status
        self.is_silent = False
        self.ordered: list[bytes] = []
        self.socket, self._other = socket.socketpair()
        self._other.close()

    def order(self, order: bytes) -> None:
        self.ordered.append(order)


@pytest.fixture
def events() -> list[Any]:
    return []


@pytest.fixture
def supervisor(events: list[Any]) -> Iterator[Supervisor]:
    supervisor = Supervisor(2, ["x"], Announcer(events.append), longest_silence=SILENCE)
    yield supervisor
    for slot in supervisor._slots:
        if slot.child is not None:
            slot.child.socket.close()


def occupied(supervisor: Supervisor, status: Status = READY) -> tuple[Slot, Any]:
    """Put a fake child into the first slot."""
    slot = supervisor._slots[0]
    child: Any = Fake(["x"], 1, monotonic(), status)
    slot.child = child
    supervisor._was_ready = supervisor._was_ready or status.was_ready
    return slot, child


def whats(events: list[Any]) -> list[What]:
    return [event.what for event in events]


def bury(supervisor: Supervisor, slot: Slot, code: int, *, lived: float = 1.0) -> float:
    """Let the child of a slot end, and return the seconds until its next start."""
    child = slot.child
    assert child is not None
    now = monotonic()
    child.started_at = now - lived
    supervisor._bury(slot, child, code, now)
    return slot.start_at - now


def test_the_delays_double_up_to_a_minute():
    assert [delay_after(deaths) for deaths in (1, 2, 3, 7, 8, 9, 10_000)] == [0.5, 1, 2, 32, 60, 60, 60]
    assert LONGEST_DELAY == 60.0


@pytest.mark.parametrize("code", [0, 75])
def test_a_process_that_has_done_its_share_is_replaced_at_once(supervisor: Supervisor, events: list[Any], code: int):
    slot, _ = occupied(supervisor)
    slot.deaths = 3
    assert bury(supervisor, slot, code) <= 0
    assert slot.deaths == 0
    assert whats(events) == [What.PROCESS_ENDED]


def test_a_process_that_dies_is_started_again_ever_more_slowly_and_that_is_told_once(
    supervisor: Supervisor, events: list[Any]
):
    delays = []
    for _ in range(7):
        slot, _ = occupied(supervisor)
        delays.append(round(bury(supervisor, slot, -signal.SIGKILL), 1))
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert whats(events).count(What.PROCESS_LOOPING) == 1
    assert events[0].text == (
        "Process 1 (pid 4711) was ended by SIGKILL. It is started again in 0.5 s; what ran in it is taken back when "
        "its lease lapses."
    )


def test_a_process_that_has_lived_for_long_begins_with_a_short_delay(supervisor: Supervisor):
    slot, _ = occupied(supervisor)
    slot.deaths = 6
    assert bury(supervisor, slot, 1, lived=STABLE) == pytest.approx(0.5, abs=0.4)


def test_an_end_without_a_word_of_having_been_ready_is_no_share(supervisor: Supervisor, events: list[Any]):
    slot, _ = occupied(supervisor, Status())
    assert bury(supervisor, slot, 0) > 0
    assert whats(events) == [What.PROCESS_LOST]


def test_a_first_process_that_refuses_its_configuration_ends_all(supervisor: Supervisor):
    slot, _ = occupied(supervisor, Status())
    other: Any = Fake(["x"], 2, monotonic(), Status())
    supervisor._slots[1].child = other
    bury(supervisor, slot, 1)
    assert other.ordered == [b"f"]
    assert supervisor._exit_code == 1


def test_a_later_one_that_refuses_is_tried_again(supervisor: Supervisor, events: list[Any]):
    supervisor._was_ready = True
    slot, _ = occupied(supervisor, Status())
    assert bury(supervisor, slot, 1) > 0
    assert whats(events) == [What.PROCESS_LOST]


def test_one_that_is_killed_while_it_finishes_is_told_by_the_exit_code(supervisor: Supervisor, events: list[Any]):
    slot, child = occupied(supervisor)
    supervisor._stop(signal.SIGTERM)
    assert child.ordered == [b"f"]
    bury(supervisor, slot, -signal.SIGKILL)
    assert supervisor._exit_code == 1
    assert "was ended by SIGKILL while it finished what it ran." in events[-1].text


def test_one_that_had_not_begun_loses_nothing(supervisor: Supervisor):
    slot, _ = occupied(supervisor, Status())
    supervisor._stop(signal.SIGTERM)
    bury(supervisor, slot, -signal.SIGTERM)
    assert supervisor._exit_code == 0


def test_the_status_is_one_for_all(supervisor: Supervisor):
    assert not supervisor.status().is_ready
    slot, child = occupied(supervisor)
    status = supervisor.status()
    assert (status.is_live, status.is_ready, status.text) == (True, True, "1 of 2 processes ready")
    assert (status.in_flight, status.seats) == (1, 4)
    child.status = Status(is_live=False, was_ready=True, text="the loop has not moved for 95 s")
    status = supervisor.status()
    assert (status.is_live, status.text) == (False, "process 1: the loop has not moved for 95 s")
    child.status = READY
    child.heard_at -= SILENCE + 1
    assert supervisor.status().text.startswith("process 1 has not been heard of for 9")
    child.heard_at = monotonic()
    supervisor._stop(signal.SIGTERM)
    status = supervisor.status()
    assert (status.is_live, status.is_ready, status.is_stopping) == (True, False, True)
    assert slot.child is child


def test_processes_are_replaced_one_after_the_other(supervisor: Supervisor):
    first, child = occupied(supervisor)
    second: Any = Fake(["x"], 2, monotonic())
    supervisor._slots[1].child = second
    supervisor._to_replace = list(supervisor._slots)
    supervisor._replace_next()
    supervisor._replace_next()
    assert (child.ordered, second.ordered) == ([b"f"], [])
    bury(supervisor, first, 0)
    fresh: Any = Fake(["x"], 1, monotonic(), Status())
    first.child = fresh
    supervisor._replace_next()
    assert second.ordered == []
    fresh.status = READY
    supervisor._replace_next()
    assert second.ordered == [b"f"]


def test_a_fresh_process_that_does_not_start_keeps_the_others_from_being_replaced(
    supervisor: Supervisor, events: list[Any]
):
    first, _ = occupied(supervisor)
    second: Any = Fake(["x"], 2, monotonic())
    supervisor._slots[1].child = second
    supervisor._to_replace = list(supervisor._slots)
    supervisor._replace_next()
    bury(supervisor, first, 0)
    first.child = Fake(["x"], 1, monotonic(), Status())  # type: ignore[assignment]
    bury(supervisor, first, 1)
    supervisor._replace_next()
    supervisor._replace_next()
    assert second.ordered == []
    assert events[-1].text == "Process 1 does not come back: the others stay as they are."


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "ended with exit code 3"), (-9, "was ended by SIGKILL"), (-200, "was ended by signal 200")],
)
def test_an_end_has_words(code: int, words: str):
    assert words_of(code) == words


def test_the_command_line_is_one_that_can_be_started_again(monkeypatch: Any):
    monkeypatch.setattr("sys.argv", ["pytest", "-q"])
    with pytest.raises(ImproperlyConfigured, match="call runscheduler from a shell, not by call_command"):
        command_line()


@pytest.mark.parametrize("text", ["1", "x:y", "1:99999"])
def test_a_link_to_nowhere_is_refused(text: str):
    with pytest.raises(ImproperlyConfigured, match="--child is for processes that --processes starts"):
        Link(text)
