"""The database connections of a thread: left as they were found, and never left broken."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from django.db import Error, connections
from django.db.backends.signals import connection_created

from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger("django_helisched.driver")

# After so many idle seconds a server may have closed the connection: ask before a job relies on it.
TRUSTED_FOR = 1.0


class _Mine(threading.local):
    """What a thread knows of its own connections."""

    known: dict[str, BaseDatabaseWrapper] | None = None
    listed: tuple[BaseDatabaseWrapper, ...] = ()
    era: int | None = None  # of the last use
    used_at = 0.0


_mine = _Mine()


class _Eras:
    """How often a thread of this process has lost the database. An increment that a race swallows is no loss."""

    now = 0


class OpenTransactions:
    """The transactions that are open in this thread, alias by alias, when this is made."""

    __slots__ = ("_depths",)

    def __init__(self) -> None:
        # Nearly always none: a look at each connection is all that a short job pays for.
        self._depths = _depths()

    def left_open(self) -> list[str]:
        """Return the aliases on which more is open now: a body entered a transaction and never left it."""
        open_now = _depths()
        return [alias for alias, depth in open_now.items() if depth > self._depths.get(alias, 0)] if open_now else []

    def closed(self) -> list[str]:
        """Return the aliases on which less is open now: a body ended a transaction that was not its own."""
        if not self._depths:
            return []
        return [one.alias for one in _connections() if _depth(one) < self._depths.get(one.alias, 0)]

    def restore(self) -> list[str]:
        """Roll back what was left open and return the aliases."""
        left_open = self.left_open()
        for alias in left_open:
            _roll_back(connections[alias], self._depths.get(alias, 0))
        return left_open


class tidy:  # noqa: N801  # read as the verb of a with statement
    """Give a job usable connections, and leave none behind that the next one could trip over.

    The connection ``alias`` is kept for the next job unless it is broken; the
    others close as at the end of a request. What was inside a transaction
    before the block is left alone: the block gets those as OpenTransactions.
    """

    __slots__ = ("_alias", "_before")

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def __enter__(self) -> OpenTransactions:
        self._before = OpenTransactions()
        freshen(self._alias)
        return self._before

    def __exit__(self, *_: object) -> None:
        left_open = self._before.restore()
        if left_open:
            logger.warning("A job left a transaction open on %s; it was rolled back.", ", ".join(left_open))
        tidy_after(self._alias)
        used()


@contextmanager
def shared(alias: str) -> Iterator[None]:
    """Do one call of a job in a thread that other jobs use between two calls of it.

    No transaction stays open: the others would become part of it. Connections
    stay, unless they are broken, since the job may be in the middle of reading.
    """
    before = OpenTransactions()
    freshen(alias)
    try:
        yield
    finally:
        left_open = before.restore()
        if left_open:
            logger.warning(
                "A job left a transaction open on %s across an await; it was rolled back. "
                "Put all of it into one function for sync_to_async.",
                ", ".join(left_open),
            )
        for connection in _connections():
            _after_job(connection, keep=True)
        used()


def tidy_after(alias: str) -> None:
    """Close what a job used beside ``alias`` as at the end of a request."""
    for connection in _connections():
        _after_job(connection, keep=connection.alias == alias)


def freshen(alias: str, *, trusted_for: float = TRUSTED_FOR) -> None:
    """Close this thread's connection where it may lead nowhere.

    It is idle for longer than that, and the server has closed it; or another
    thread has lost the database since: this one may still lead to a server that
    takes no writes any more.
    """
    connection = _connection(alias)
    is_of_before = _mine.era not in (None, _Eras.now)
    _mine.era = _Eras.now
    if connection.connection is None or connection.in_atomic_block:
        return
    idle = elapsed() - _mine.used_at
    if is_of_before or (idle >= trusted_for and not _answers(connection)):
        close(connection)


def used() -> None:
    """Note that this thread has just used its connections."""
    if _connections():
        _mine.used_at = elapsed()


def drop(alias: str, *, was_lost: bool = False) -> None:
    """Close this thread's connection after an error on it, unless it is inside somebody's transaction.

    ``was_lost``: the database could not answer, so that the other threads are to connect anew before they go on.
    """
    if was_lost:
        _Eras.now += 1
    connection = connections[alias]
    if not connection.in_atomic_block:
        close(connection)


def drop_all() -> None:
    """Close every connection of this thread, which ends."""
    for connection in _connections():
        close(connection)


def era() -> int:
    """Return a number that changes whenever a thread of this process has lost the database."""
    return _Eras.now


def close(connection: BaseDatabaseWrapper) -> None:
    """Close a connection, which may be gone already."""
    # One that is gone may refuse even to be closed.
    with suppress(Error):
        connection.close()


def _connection(alias: str) -> BaseDatabaseWrapper:
    found = None if _mine.known is None else _mine.known.get(alias)
    return connections[alias] if found is None else found


def _connections() -> tuple[BaseDatabaseWrapper, ...]:
    if _mine.known is None:
        # Django's own way costs as much as a short job, each time.
        _mine.known = {one.alias: one for one in connections.all(initialized_only=True)}
        _mine.listed = tuple(_mine.known.values())
    return _mine.listed


def _note(*, connection: BaseDatabaseWrapper, **_: object) -> None:
    """Take note of a connection that this thread has just opened."""
    known = _mine.known
    # Django itself opens some that are no project's, to make databases.
    is_ours = connection.alias in connections.settings and connections[connection.alias] is connection
    if known is not None and is_ours:
        known[connection.alias] = connection
        _mine.listed = tuple(known.values())


connection_created.connect(_note, dispatch_uid="django_helisched.driver.connections")


def _depths() -> dict[str, int]:
    """Return how deep the transactions are that are open in this thread: of most jobs none, and nothing to make."""
    depths: dict[str, int] = {}
    for connection in _connections():
        depth = _depth(connection)
        if depth:
            depths[connection.alias] = depth
    return depths


def _depth(connection: BaseDatabaseWrapper) -> int:
    if connection.connection is None:
        return 0
    if connection.in_atomic_block:
        return 1 + len(connection.savepoint_ids)
    return int(connection.autocommit != connection.settings_dict["AUTOCOMMIT"])


def _roll_back(connection: BaseDatabaseWrapper, depth: int) -> None:
    if depth == 0:
        # Django refuses to reopen a connection that closes inside a block; nobody is left to leave this one.
        connection.in_atomic_block = False
        connection.savepoint_ids = []
        connection.atomic_blocks = []
        close(connection)
        return
    inner = [sid for sid in connection.savepoint_ids[depth - 1 :] if sid]
    if inner:
        with suppress(Error):
            connection.savepoint_rollback(inner[0])
    del connection.savepoint_ids[depth - 1 :]
    del connection.atomic_blocks[depth:]


def _after_job(connection: BaseDatabaseWrapper, *, keep: bool) -> None:
    if connection.in_atomic_block:
        return
    if not keep:
        connection.close_if_unusable_or_obsolete()
    elif connection.errors_occurred:
        if _answers(connection):
            connection.errors_occurred = False
        else:
            close(connection)


def _answers(connection: BaseDatabaseWrapper) -> bool:
    """Ask the server itself: what Django asks before a request says yes on SQLite whatever happened."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return False
    return True
