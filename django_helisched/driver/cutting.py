"""End from another thread what a thread does on the database: at once, and for good."""

from __future__ import annotations

import logging
import os
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from django.db import OperationalError, connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger("django_helisched.driver")

_AGAIN = 0.05  # seconds between two interruptions of a statement: one may come just before it begins


@contextmanager
def cuttable(alias: str) -> Iterator[Callable[[], None]]:
    """Give what another thread may call to cut this thread's connection while it is inside the block.

    An open transaction is undone, and its locks are free; what the thread asks
    of the connection afterwards is an error. A call that waits for the database
    returns with one. Raises nothing: where it fails, the fence must do alone.
    """
    connection = connections[alias]
    if connection.vendor == "sqlite":
        leash = _Leash(connection)
        with connection.execute_wrapper(leash):
            yield lambda: _quietly(leash.cut)
    else:
        line = _Line(connection)
        yield lambda: _quietly(line.cut)


def _quietly(cut: Callable[[], None]) -> None:
    try:
        cut()
    except Exception:
        # It has ended by itself meanwhile, or the server does not answer.
        logger.debug("A connection could not be cut.", exc_info=True)


class _Line:
    """A connection to a server, which can be told to end it."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._raw = connection.connection
        self._session: int | None = None
        if self._raw is not None and connection.vendor == "mysql":
            with suppress(Exception):  # one that is broken needs no cut
                self._session = self._raw.thread_id()

    def cut(self) -> None:
        raw = self._connection.connection
        if raw is None:
            return
        if self._connection.vendor == "mysql":
            self._kill(raw)
        else:
            self._hang_up(raw)

    def _kill(self, raw: Any) -> None:
        # MySQL's client tells the session's number to no other thread while a query runs, so it was asked before.
        session = self._session if raw is self._raw and self._session is not None else raw.thread_id()
        with connections[self._connection.alias].cursor() as cursor:
            cursor.execute("KILL %s", [session])

    def _hang_up(self, raw: Any) -> None:
        with suppress(Exception):
            raw.cancel()
        with socket.socket(fileno=os.dup(raw.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)


class _Leash:
    """A connection to SQLite: each statement passes here, so that no other thread comes between.

    SQLite's own means to refuse statements, and to close, wait for the running
    one while Python stands still; an interruption does not.
    """

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._is_cut = False

    def __call__(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,  # noqa: FBT001  # as Django calls it
        context: dict[str, Any],
    ) -> Any:
        with self._lock:
            if self._is_cut:
                raise OperationalError("this job was abandoned; its connection is cut")
            return execute(sql, params, many, context)

    def cut(self) -> None:
        self._is_cut = True
        raw: Any = self._connection.connection
        while not self._lock.acquire(timeout=_AGAIN):
            raw.interrupt()
        try:
            # Between two statements: nothing can run outside of the transaction that this undoes.
            raw.rollback()
        finally:
            self._lock.release()
