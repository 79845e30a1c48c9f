"""Two actors, each on a database connection of its own, who stop where a test says.

A test lets one of them come to a statement, or to the end of an open
transaction, lets the other act, and lets the first one go on. Nothing here waits
for time to pass; only a test that has gone wrong meets the deadline.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import connection, connections, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

R = TypeVar("R")

DEADLINE = 60.0  # seconds: the longest wait of the product for a lock is a third of it
# InnoDB goes on showing its transactions as they were until nobody has looked for a tenth of a second.
LOOK_EVERY = 0.11  # seconds

# Everything that takes a lock. SQLite's BEGIN IMMEDIATE takes the only one there is.
_LOCKS = re.compile(r"^\s*(BEGIN IMMEDIATE|INSERT|UPDATE|DELETE|WITH (picked|stored))|\bFOR (NO KEY )?UPDATE\b")

_acting = threading.local()


class BrokenOff(Exception):
    """Raised inside an actor that a test breaks off, so that its transaction is undone."""


def never(sql: str) -> bool:
    """Let an actor come to its end."""
    del sql
    return False


def before_write(sql: str) -> bool:
    """Stop an actor when it has read, and is about to take its first lock."""
    return _LOCKS.search(sql) is not None


def pause() -> None:
    """Stop the actor whose thread this is, once; for bodies of jobs."""
    _acting.actor.pause()


def open_transaction(work: Callable[[], R]) -> Callable[[], R]:
    """Return ``work`` inside a transaction that stays open until the actor goes on."""

    def run() -> R:
        with transaction.atomic():
            result = work()
            pause()
            return result

    return run


def has_one_writer() -> bool:
    """Tell whether the database lets one transaction write at a time, and locks no rows: SQLite."""
    return not connection.features.has_select_for_update


class Actor(Generic[R]):
    """One thread, one connection, one piece of work."""

    def __init__(self, work: Callable[[], R], stop: Callable[[str], bool]) -> None:
        self._work = work
        self._stop = stop
        self._arrived = threading.Event()
        self._may_go_on = threading.Event()
        self._is_broken_off = False
        self._backend = 0
        self._in_hand = ""  # the statement that the database has not answered yet
        self._result: list[R] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Stop here until the test lets this actor go on; later calls pass."""
        if self._arrived.is_set():
            return
        self._arrived.set()
        assert self._may_go_on.wait(DEADLINE), "nobody let the actor go on"
        if self._is_broken_off:
            raise BrokenOff

    def stands(self) -> Actor[R]:
        """Return this actor once it has come to its stop."""
        assert self._arrived.wait(DEADLINE), "the actor came to no stop"
        if self._error is not None:
            raise self._error
        assert not self._result, "the actor came to its end and not to its stop"
        return self

    def waits(self) -> Actor[R]:
        """Return this actor once the database makes it wait for another's lock."""
        never, end = threading.Event(), time.monotonic() + DEADLINE
        while not self._is_waiting():
            assert time.monotonic() < end, "the actor waited for no lock"
            never.wait(LOOK_EVERY)
        return self

    def go_on(self) -> None:
        """Let the actor go on from its stop."""
        self._may_go_on.set()

    def result(self) -> R:
        """Return what the actor's work returned, or raise what it raised, once it has ended by itself."""
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive(), "the actor came to no end"
        if self._error is not None:
            raise self._error
        return self._result[0]

    def finish(self) -> R:
        """Let the actor go on to its end, and return what its work returned."""
        self.go_on()
        return self.result()

    def break_off(self) -> None:
        """End the actor where it stands; its transaction is rolled back."""
        self._is_broken_off = True
        self.go_on()
        self._thread.join(DEADLINE)
        assert isinstance(self._error, BrokenOff)

    def _run(self) -> None:
        _acting.actor = self
        try:
            connection.ensure_connection()
            self._backend = backend_id()
            with connection.execute_wrapper(self._watch):
                self._result.append(self._work())
        except BaseException as error:
            self._error = error
        finally:
            connections.close_all()
            self._arrived.set()

    def _watch(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._stop(sql):
            self.pause()
        self._in_hand = sql
        try:
            return execute(sql, params, many, context)
        finally:
            self._in_hand = ""

    def _is_waiting(self) -> bool:
        if not self._thread.is_alive():
            self.result()
            raise AssertionError("the actor came to its end and waited for nobody")
        if has_one_writer():
            # SQLite shows no waiters; a write that has begun while another transaction is open is one.
            return before_write(self._in_hand)
        return waits_for_lock(self._backend)


def backend_id() -> int:
    """Return the number by which the server knows this thread's connection; 0 where there is no server."""
    if has_one_writer():
        return 0
    raw: Any = connection.connection
    return int(raw.info.backend_pid if hasattr(raw, "info") and hasattr(raw.info, "backend_pid") else raw.thread_id())


def waits_for_lock(backend: int) -> bool:
    """Ask the server whether that connection waits for a lock."""
    if connection.features.has_select_for_no_key_update:
        query = "SELECT cardinality(pg_blocking_pids(%s))"
    else:
        waiting = "trx_mysql_thread_id = %s AND trx_state = 'LOCK WAIT'"
        query = f"SELECT COUNT(*) FROM information_schema.innodb_trx WHERE {waiting}"
    with connection.cursor() as cursor:
        cursor.execute(query, [backend])
        return bool(cursor.fetchone()[0])


class Stage:
    """Where actors enter; none is left behind."""

    def __init__(self) -> None:
        self._actors: list[Actor[Any]] = []

    def enter(self, work: Callable[[], R], stop: Callable[[str], bool] = never) -> Actor[R]:
        """Start an actor and return it at once."""
        actor = Actor(work, stop)
        self._actors.append(actor)
        return actor

    def holds_open(self, work: Callable[[], R]) -> Actor[R]:
        """Return an actor that has done ``work`` in a transaction which is still open."""
        return self.enter(open_transaction(work)).stands()

    def about_to_write(self, work: Callable[[], R]) -> Actor[R]:
        """Return an actor that has read what it needs for ``work``, and has locked nothing yet."""
        return self.enter(work, before_write).stands()

    def clear(self) -> None:
        """Let everybody go on, and return when all have ended."""
        for actor in self._actors:
            actor.go_on()
        for actor in self._actors:
            actor._thread.join(DEADLINE)


@contextmanager
def staged() -> Iterator[Stage]:
    """Give a stage, and clear it at the end."""
    stage = Stage()
    try:
        yield stage
    finally:
        stage.clear()
