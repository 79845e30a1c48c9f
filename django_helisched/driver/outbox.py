"""The ends of actions on their way into the database, many in one transaction.

A seat is free as soon as its body has ended; the end waits here, and its lease
goes on being renewed, until it is written. A mutation never comes here: its end
is part of its own transaction.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Protocol

from django_helisched.driver import connections
from django_helisched.driver.patience import FIRST_DELAY, LONGEST_DELAY, is_outage
from django_helisched.driver.settling import Settled
from django_helisched.jobs.records import maker
from django_helisched.stores.base import SettleAnswer
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django_helisched.driver.farewell import Farewell
    from django_helisched.driver.held import Held, HeldClaims
    from django_helisched.driver.patience import Patience
    from django_helisched.driver.settling import Finished, Settler

logger = logging.getLogger("django_helisched.driver")

FULL = 64  # ends for which no others are waited: the share of each in the commit is small already
MOST = 256  # ends of one transaction, where so many have come together
ROOM = 4 * MOST  # claims beside those in seats: with so many that wait for a seat or to be written nothing is claimed

# Seconds that an end waits for others, while other jobs of this process are on their way to theirs.
LINGER = 0.004

# Seconds after which a writer is taken to wait for a row that somebody holds; and how many may wait so at once.
STUCK, MOST_STUCK = 1.0, 3


_settled = maker(Settled)


class Outbox(Protocol):
    """Where the ends of actions are handed in."""

    def open(self) -> None:
        """Get ready."""
        ...

    def add(self, finished: Finished) -> None:
        """Take charge of one end: it will be written, or told as unsettled. Never raises."""
        ...

    def watch(self) -> None:
        """Let another writer begin where a row that somebody holds locked has stopped the present one."""
        ...

    def close(self) -> None:
        """Write what waits, and let the writer end."""
        ...

    def join(self, seconds: float) -> None:
        """Return once the writer has ended, or after so many seconds."""
        ...


class DirectOutbox:
    """Writes each end at once, in the thread of its seat: for seats that run inside the caller's transaction."""

    def __init__(self, settler: Settler, farewell: Farewell) -> None:
        self._settler = settler
        self._farewell = farewell

    def open(self) -> None:
        """Nothing is needed."""

    def add(self, finished: Finished) -> None:
        held = finished.held
        try:
            settled = self._settler.settle(finished)
        except BaseException as error:
            self._farewell.unsettled(held, error)
            return
        self._farewell.settled(held, settled, finished.seconds)

    def watch(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing waits."""

    def join(self, seconds: float) -> None:
        """Nothing waits."""


class ThreadOutbox:
    """Writes the ends that have come together, from one thread on a connection of its own.

    Full batches go at once, and so does whatever there is once no other job of
    the process runs. A batch that the database refuses is halved until the bad
    end stands alone; after an outage each goes by itself, so that one which the
    database cannot take holds up nobody.
    """

    def __init__(
        self,
        settler: Settler,
        farewell: Farewell,
        patience: Patience,
        held_claims: HeldClaims,
        written: Callable[[Sequence[Held]], None],
    ) -> None:
        self._settler = settler
        self._farewell = farewell
        self._patience = patience
        self._held_claims = held_claims
        self._written = written
        self._waiting: deque[Finished] = deque()
        self._alone: deque[Finished] = deque()
        self._some = threading.Event()
        self._full = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._began: float | None = None
        self._stuck = 0
        self._delay = 0.0

    def open(self) -> None:
        self._is_closing = False

    def add(self, finished: Finished) -> None:
        self._waiting.append(finished)
        # Setting an Event that is set takes its lock all the same.
        if not self._some.is_set():
            self._some.set()
        if len(self._waiting) >= FULL and not self._full.is_set():
            self._full.set()
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._begin()

    def watch(self) -> None:
        began = self._began
        if began is None or elapsed() - began < STUCK or not (self._waiting or self._alone):
            return
        with self._lock:
            if self._began == began and self._stuck < MOST_STUCK:
                self._stuck += 1
                self._begin()

    def close(self) -> None:
        self._is_closing = True
        self._full.set()
        self._some.set()

    def join(self, seconds: float) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _begin(self) -> None:
        self._began = None
        self._thread = threading.Thread(target=self._run, name="helisched-outbox", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over():
                self._some.wait()
                self._some.clear()
                self._linger()
                self._full.clear()
                self._pass()
                self._rest()
        finally:
            connections.drop_all()

    def _is_over(self) -> bool:
        """Tell whether this writer may end: all is written, or another one has taken its place."""
        with self._lock:
            waits = bool(self._waiting or self._alone)
            if self._thread is not threading.current_thread() and (self._thread is not None or not waits):
                self._stuck -= 1
                return True
            self._thread = threading.current_thread()
            if not self._is_closing or waits:
                return False
            # An end that comes from now on finds no writer, and begins one; one that came before is seen here.
            self._thread = None
            if self._waiting:
                self._thread = threading.current_thread()
            return self._thread is None

    def _linger(self) -> None:
        """Let others come, as long as there are others on their way."""
        waiting = len(self._waiting) + len(self._alone)
        if waiting < FULL and waiting < len(self._held_claims) and not self._is_closing:
            self._full.wait(LINGER)

    def _pass(self) -> None:
        """Write one batch, and one of those that go alone."""
        batch = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
        alone = [self._alone.popleft()] if self._alone else []
        if not batch and not alone:
            return
        self._began = elapsed()
        try:
            with connections.tidy(self._patience.database):
                self._write(batch)
                self._write(alone)
        except BaseException:
            # What is left of them lapses. The writer must go on, for the others.
            logger.exception("The outbox was left with an error; it goes on.")
            for finished in (*batch, *alone):
                self._held_claims.drop(finished.held)
        if self._thread is threading.current_thread():
            self._began = None
        self._written([finished.held for finished in (*batch, *alone)])

    def _rest(self) -> None:
        """See to it that what is left is written soon: after a while, where the database did not answer."""
        if self._waiting or self._alone:
            self._some.set()
            if self._delay:
                self._patience.hurry.wait(self._delay)

    def _write(self, batch: Sequence[Finished]) -> None:
        if not batch:
            return
        try:
            answers = self._settler.settle_together(batch)
            again = [one for one, answer in zip(batch, answers, strict=True) if answer is SettleAnswer.CANCEL_REQUESTED]
        except Exception as error:
            connections.drop(self._patience.database, was_lost=is_outage(error))
            self._part(batch, error)
            return
        self._delay = 0.0
        for finished, answer in zip(batch, answers, strict=True):
            if answer is not SettleAnswer.CANCEL_REQUESTED:
                settled = _settled(answer=answer, ending=finished.ending, outcome=finished.outcome)
                self._farewell.settled(finished.held, settled, finished.seconds)
        if again:
            self._write([finished.canceled() for finished in again])

    def _part(self, batch: Sequence[Finished], error: Exception) -> None:
        if is_outage(error):
            self._wait_out(batch, error)
        elif len(batch) > 1:
            middle = len(batch) // 2
            self._write(batch[:middle])
            self._write(batch[middle:])
        elif batch[0].is_bare:
            self._farewell.unsettled(batch[0].held, error)
        else:
            self._write([batch[0].bare(error)])

    def _wait_out(self, batch: Sequence[Finished], error: Exception) -> None:
        self._delay = min(LONGEST_DELAY, 2 * self._delay or FIRST_DELAY)
        for finished in batch:
            if self._patience.is_over(finished.held, finished.ended_at):
                self._farewell.unsettled(finished.held, error)
            else:
                self._alone.append(finished)
