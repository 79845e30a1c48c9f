from __future__ import annotations

import os
import queue
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched.driver.events import Announcer
from django_helisched.driver.pace import Pace
from django_helisched.driver.waking import Listening
from tests.driver.conftest import Events
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.driver.waking import Ear

# Each hears on its own database only.
_OWN = {"sqlite": "test_file.py", "postgres": "test_notify.py"}
collect_ignore = [file for database, file in _OWN.items() if database != os.environ.get("HELISCHED_TEST_DB", "sqlite")]


class FakeEar:
    """An ear into which a test speaks. An exception that is put into it is raised."""

    name = "FAKE"

    def __init__(self) -> None:
        self.words: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.log: list[str] = []
        self.deaf_because = ""
        self.swallows = False
        self.lends = False
        self.refusals: list[Exception] = []

    def open(self) -> None:
        self.log.append("open")
        if self.refusals:
            raise self.refusals.pop(0)

    def hear(self, seconds: float) -> list[str]:
        try:
            said = self.words.get(timeout=max(0.001, seconds))
        except queue.Empty:
            return []
        if isinstance(said, Exception):
            raise said
        return [] if said is None else [said]

    def say(self, text: str) -> None:
        if not self.swallows:
            self.words.put(text)

    def by_its_line(self, ask: Callable[[], bool]) -> bool:
        if not self.lends:
            return False
        self.log.append("lend")
        return ask()

    def close(self) -> None:
        self.log.append("close")

    def interrupt(self) -> None:
        self.words.put(None)


class Listener:
    """Something that listens by an ear until the test ends, and what it was brought to do."""

    def __init__(self, make_pace: Callable[[], Pace], wake: Callable[[], None] | None = None) -> None:
        self.done: list[str] = []
        self.events = Events()
        self.pace = make_pace()
        self.can_claim = False
        self._wake = wake
        self._lock = threading.Lock()

    def listen(self, ear: Ear, **options: Any) -> Any:
        return Listening(
            ear, self.pace, Announcer(self.events.append), wake=self.wake, hurry=self.hurry, claim=self.claim, **options
        ).going_on()

    def wake(self) -> None:
        with self._lock:
            self.done.append("look")
        if self._wake is not None:
            self._wake()

    def claim(self) -> bool:
        with self._lock:
            self.done.append("claim")
        return self.can_claim

    def hurry(self) -> None:
        with self._lock:
            self.done.append("cancel")

    def times(self, what: str = "look") -> int:
        with self._lock:
            return self.done.count(what)

    def settled(self) -> None:
        """Return once it can be relied on, forgetting what that took."""
        wait_for(lambda: self.pace.is_told)
        with self._lock:
            self.done.clear()


@pytest.fixture
def ear() -> FakeEar:
    return FakeEar()


@pytest.fixture
def listener() -> Listener:
    return Listener(a_pace)


def a_pace() -> Pace:
    return Pace(timedelta(seconds=0.1), timedelta(seconds=1), timedelta(seconds=30))
