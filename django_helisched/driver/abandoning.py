"""Give up bodies that do not end though they were told to.

A thread cannot be killed. What can be done is to leave it alone: its job ends
without it, its seat is taken by a new thread, its connection is cut, and what
it may still return is dropped. Where as many threads are lost as there are
seats, the process itself must be started anew.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django_helisched.driver import connections
from django_helisched.driver.cutting import cuttable
from django_helisched.driver.deadline import OutOfTime, Stop
from django_helisched.driver.endings import ending_of_abandonment, place_of, place_of_task
from django_helisched.driver.events import DriverEvent, What
from django_helisched.driver.narration import told
from django_helisched.driver.settling import Finished
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from django_helisched.driver.async_seats import AsyncSeats
    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.events import Announcer
    from django_helisched.driver.held import Held
    from django_helisched.driver.outbox import Outbox
    from django_helisched.driver.seats import Seats
    from django_helisched.driver.settling import Settler
    from django_helisched.jobs.backoff import Backoff
    from django_helisched.jobs.outcome import Ending

_OVERTIME = "it goes on although it was told to stop; its seat is not free until it ends"
_ABANDONED = "it did not stop; its thread is left behind, and another one takes the seat"
_ABANDONED_TASK = "it did not stop; it is left behind on the event loop, and its seat is free"
_NO_THREAD = "no thread could be started in the place of an abandoned one"
_LATE = "the body that was abandoned has ended after all: whatever it returned or raised was dropped"


@dataclass(slots=True, kw_only=True)
class Run:
    """A body that runs: since when, how its job is tried again, and what cuts its connection to ``database``."""

    held: Held
    started_at: datetime
    began: float  # on the clock of stores.clock.elapsed()
    backoff: Backoff
    database: str
    cut: Callable[[], object] = bool

    @contextmanager
    def around(self) -> Iterator[None]:
        """Be ready to give up the body that runs inside the block, in this thread."""
        self.held.thread_id = threading.get_ident()
        with cuttable(self.database) as self.cut:
            yield


class Abandoning:
    """Leaves bodies behind, and counts those that still occupy a thread. Safe in threads."""

    def __init__(
        self,
        config: DriverConfig,
        seats: Seats,
        settler: Settler,
        outbox: Outbox,
        announce: Announcer,
        worn_out: Callable[[], None],
    ) -> None:
        self._config = config
        self._seats = seats
        self._settler = settler
        self._outbox = outbox
        self._announce = announce
        self._worn_out = worn_out
        self._lock = threading.Lock()
        self._left = 0

    def abandon(self, run: Run, kind: type[Stop] = OutOfTime) -> None:
        """Leave a body that did not end in time after ``kind`` was raised in it; at once, from any thread.

        Nothing happens where the body has ended in the same instant. Its job is
        settled under its fence, and where that cannot be written the lease lapses.
        Inline seats cannot leave a body: it is told, and goes on.
        """
        held = run.held
        if self._seats.are_inline:
            self._announce(told(held.claim, What.JOB_OVERTIME, text=_OVERTIME))
            return
        ending = ending_of_abandonment(held.claim.id, kind, self._config.timeout_grace, place_of(held.thread_id))
        if not held.abandon():
            return
        self._announce(told(held.claim, What.JOB_ABANDONED, text=_ABANDONED))
        if self._leave_apart(run, ending) and self._replace(held):
            self._count()

    def abandon_task(
        self, run: Run, task: asyncio.Task[Any] | None, seats: AsyncSeats, kind: type[Stop] = OutOfTime
    ) -> None:
        """Leave an async body on the event loop behind, as ``abandon`` does; called on that loop.

        Its task costs no thread, so it wears nothing out. A second call does nothing.
        """
        held = run.held
        where = "" if task is None else place_of_task(task)
        ending = ending_of_abandonment(held.claim.id, kind, self._config.timeout_grace, where)
        if task is None or not held.abandon():
            return
        self._announce(told(held.claim, What.JOB_ABANDONED, text=_ABANDONED_TASK))
        if self._leave_apart(run, ending):
            seats.leave_behind(task)

    def _leave_apart(self, run: Run, ending: Ending) -> bool:
        """Write the end of a job from a thread of its own: a slow server does not hold up whoever found out."""
        thread = threading.Thread(target=self._leave, args=(run, ending), name="helisched-abandoning", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._leave(run, ending)
            self._wear_out(_NO_THREAD)
            return False
        return True

    def _replace(self, held: Held) -> bool:
        try:
            self._seats.replace(held)
        except RuntimeError:
            # The system gives no more threads: what is left of this process is to end.
            self._wear_out(_NO_THREAD)
            return False
        return True

    def ended(self, held: Held) -> None:
        """Note that a body which was abandoned has ended after all: its thread is no burden any more."""
        with self._lock:
            self._left -= 1
        self.late(held)

    def late(self, held: Held) -> None:
        """Tell that a body which was abandoned has ended after all."""
        self._announce(told(held.claim, What.JOB_LATE, text=_LATE))

    def _count(self) -> None:
        with self._lock:
            self._left += 1
            left = self._left
        if left < self._config.threads:
            return
        self._wear_out("1 abandoned body occupies a thread" if left == 1 else f"{left} abandoned bodies occupy threads")

    def _wear_out(self, why: str) -> None:
        text = f"{why}: this process finishes what else it runs and leaves, to be started anew."
        self._announce(DriverEvent(what=What.DRIVER_WORN, text=text))
        self._worn_out()

    def _leave(self, run: Run, ending: Ending) -> None:
        held, now = run.held, elapsed()
        try:
            # Before the end is written: on SQLite the body may hold the lock that this needs.
            run.cut()
        finally:
            connections.drop_all()
            self._outbox.add(
                Finished(
                    held=held,
                    ending=ending,
                    outcome=self._settler.decide(held.claim, ending, run.backoff),
                    started_at=run.started_at,
                    seconds=now - run.began,
                    ended_at=now,
                )
            )
