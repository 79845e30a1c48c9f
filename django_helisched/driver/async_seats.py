"""Where async bodies run: one event loop for all of them, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from contextvars import Context
from typing import TYPE_CHECKING, Any

from django_helisched.driver import connections
from django_helisched.driver.native import make_task

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from django_helisched.driver.held import Held
    from django_helisched.driver.lanes import Lane, Lanes

    Work = Callable[[Held, Lane], Coroutine[Any, Any, None]]

logger = logging.getLogger("django_helisched.driver")


class AsyncSeats:
    """So many bodies at once on one loop. A daemon: a second signal does not wait for what it runs.

    Whatever a body raises, or lets a task of its own raise, the loop goes on.
    """

    def __init__(self, size: int, lanes: Lanes) -> None:
        self._size = size
        self._lanes = lanes
        self._queue: deque[Held] = deque()
        self._lock = threading.Lock()
        self._taken = 0
        self._running = 0
        self._is_calling = False
        self._is_closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._left: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._work: Work | None = None
        self._freed: Callable[[], None] | None = None

    @property
    def size(self) -> int:
        """Return how many bodies run at once."""
        return self._size

    @property
    def is_running(self) -> bool:
        """Tell whether there is a body on the loop."""
        return self._running > 0

    def open(self, work: Work, freed: Callable[[], None]) -> None:
        """Get ready to ``work``, which never raises, and to tell when a seat is ``freed``."""
        self._work, self._freed, self._is_closing = work, freed, False

    def free(self) -> int:
        """Return how many claims could begin now; less than zero: so many wait for a seat."""
        with self._lock:
            return self._size - self._taken

    def start(self, *held: Held) -> None:
        """Hand over claims."""
        with self._lock:
            self._taken += len(held)
            self._queue.extend(held)
            if self._loop is None:
                # Only with the first claim: many a project has no async job.
                self._begin()
            self._call()

    def unstarted(self) -> list[Held]:
        """Take back the claims that no seat has begun."""
        taken_back: list[Held] = []
        while self._queue:
            try:
                taken_back.append(self._queue.popleft())
            except IndexError:  # the loop was faster
                break
        self._count(-len(taken_back))
        return taken_back

    def close(self) -> None:
        """Let the loop end once every body has ended."""
        self._is_closing = True
        with self._lock:
            self._call()

    def answer(self, callback: Callable[[], None]) -> None:
        """Call back from the loop, as soon as no body keeps it busy."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(callback)

    def at_work(self) -> tuple[asyncio.Task[Any] | None, int | None]:
        """Return the task that keeps the loop busy now, and the loop's thread."""
        with self._lock:
            if self._loop is None or self._thread is None:
                return None, None
            return asyncio.current_task(self._loop), self._thread.ident

    def _begin(self) -> None:
        self._is_calling = False
        self._loop = loop = asyncio.new_event_loop()
        loop.set_task_factory(make_task)
        self._thread = threading.Thread(target=self._run, args=(loop,), name="helisched-loop", daemon=True)
        self._thread.start()

    def _call(self) -> None:
        # One call for many claims: each writes to the pipe that wakes the loop.
        if self._loop is not None and not self._is_calling:
            self._is_calling = True
            self._loop.call_soon_threadsafe(self._take)

    def _take(self) -> None:
        self._is_calling = False
        while self._queue and self._running < self._size:
            try:
                held = self._queue.popleft()
            except IndexError:  # given back meanwhile
                break
            self._sit(held)
        if self._is_closing and not self._running and not self._queue and self._loop is not None:
            self._loop.stop()

    def _sit(self, held: Held) -> None:
        if self._loop is None or self._work is None:
            return
        self._running += 1
        task = self._loop.create_task(self._work(held, self._lanes.next()), context=Context())
        # The loop itself keeps no task alive.
        self._tasks.add(task)
        task.add_done_callback(self._leave)

    def leave_behind(self, task: asyncio.Task[Any]) -> None:
        """Free the seat of a task that does not end; called on the loop."""
        if task in self._tasks:
            self._left.add(task)
            self._leave_seat()

    def _leave(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task in self._left:
            self._left.discard(task)
        else:
            self._leave_seat()

    def _leave_seat(self) -> None:
        self._running -= 1
        self._count(-1)
        if self._freed is not None:
            self._freed()
        self._take()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            while not self._is_over():
                try:
                    loop.run_forever()
                except BaseException:
                    # A task that a body left to itself has raised SystemExit or KeyboardInterrupt.
                    logger.exception("The event loop was left with an error; it goes on.")
        finally:
            loop.close()
            connections.drop_all()

    def _is_over(self) -> bool:
        with self._lock:
            if not self._is_closing or self._running or self._queue:
                return False
            # A claim that comes from now on begins another loop.
            self._loop = self._thread = None
            self._lanes.close()
            return True

    def _count(self, change: int) -> None:
        with self._lock:
            self._taken += change
