"""Where bodies run: threads in a process, or the caller's own thread in a test."""

from __future__ import annotations

import logging
import threading
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from django_helisched.driver import connections

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.driver.held import Held

logger = logging.getLogger("django_helisched.driver")


class Seats(Protocol):
    """What a driver needs of the place where jobs run."""

    @property
    def size(self) -> int:
        """Return how many jobs run at once; zero: this driver claims nothing."""
        ...

    @property
    def are_inline(self) -> bool:
        """Tell whether jobs run in the thread that claims them, on its connections."""
        ...

    def open(self, work: Callable[[Held], None], freed: Callable[[], None]) -> None:
        """Get ready to ``work``, which never raises, and to tell when a seat is ``freed``."""
        ...

    def free(self) -> int:
        """Return how many claims could begin now; less than zero: so many wait for a seat."""
        ...

    def start(self, *held: Held) -> None:
        """Hand over claims."""
        ...

    def unstarted(self) -> list[Held]:
        """Take back the claims that no seat has begun."""
        ...

    def replace(self, held: Held) -> None:
        """Free the seat of a body that was abandoned, by another one in its place; tell that it is free."""
        ...

    def close(self) -> None:
        """Let every seat end once it has finished what it runs."""
        ...


class ThreadSeats:
    """One thread for each seat. Daemons: a second signal does not wait for what they run."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._queue: SimpleQueue[Held | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._taken = 0
        self._names = count(1)
        self._threads: list[threading.Thread] = []
        self._work: Callable[[Held], None] = _nothing
        self._freed: Callable[[], None] = _nothing

    @property
    def size(self) -> int:
        return self._size

    @property
    def are_inline(self) -> bool:
        return False

    def open(self, work: Callable[[Held], None], freed: Callable[[], None]) -> None:
        self._work, self._freed = work, freed
        self._threads = [self._add_thread() for _ in range(self._size)]

    def free(self) -> int:
        return self._size - self._taken

    def start(self, *held: Held) -> None:
        self._count(len(held))
        for one in held:
            self._queue.put(one)

    def unstarted(self) -> list[Held]:
        taken_back: list[Held] = []
        try:
            while True:
                held = self._queue.get_nowait()
                if held is not None:
                    taken_back.append(held)
        except Empty:
            self._count(-len(taken_back))
        return taken_back

    def replace(self, held: Held) -> None:
        del held  # its thread sees by itself that it is not wanted any more
        self._add_thread()
        self._count(-1)
        self._freed()

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)

    def _add_thread(self) -> threading.Thread:
        name = f"helisched-seat-{next(self._names)}"
        thread = threading.Thread(target=self._sit, name=name, daemon=True)
        thread.start()
        return thread

    def _sit(self) -> None:
        try:
            while (held := self._queue.get()) is not None:
                try:
                    self._work(held)
                except BaseException:
                    logger.exception("A seat was left with an error; it goes on.")
                if held.is_abandoned:
                    return
                self._count(-1)
                self._freed()
        finally:
            connections.drop_all()

    def _count(self, change: int) -> None:
        with self._lock:
            self._taken += change


class InlineSeats:
    """Jobs run one after another in the thread that claims them, on its connections: for tests."""

    def __init__(self, size: int = 1) -> None:
        self._size = size
        self._work: Callable[[Held], None] | None = None

    @property
    def size(self) -> int:
        return self._size

    @property
    def are_inline(self) -> bool:
        return True

    def open(self, work: Callable[[Held], None], freed: Callable[[], None]) -> None:
        del freed  # a job has ended before anybody could wait for it
        self._work = work

    def free(self) -> int:
        return self._size

    def start(self, *held: Held) -> None:
        for one in held:
            if self._work is not None:
                self._work(one)

    def unstarted(self) -> list[Held]:
        return []

    def replace(self, held: Held) -> None:
        """Never asked: there is no thread to leave the body in."""

    def close(self) -> None:
        self._work = None


def _nothing(*_: object) -> None:
    """Stand in until the seats are open."""
