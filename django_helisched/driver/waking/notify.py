"""LISTEN, on a connection of its own, over which a driver also claims what it has just heard of."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.db import Error, OperationalError, connections

from django_helisched.driver import connections as threads
from django_helisched.driver.waking.ear import Waiting
from django_helisched.stores.clock import elapsed
from django_helisched.stores.orm.channel_notify import Notifications, name_of
from django_helisched.stores.orm.marks import SLOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper

# A silent line may have been dead for hours. The kernel asks, so that no statement has to.
_KEEPALIVES = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

# Planning a claim takes twice as long as carrying it out. Of what is sent more often than that the plan is kept...
_SENT_BEFORE = 2
# ... and must be right for every number of rows there may be: what is claimed stands in front of an index. A scan that
# cannot be helped counts as so dear then that the statement would be compiled, each time.
ONE_PLAN = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off"
_PLAN_ANEW = "DISCARD PLANS"


class NotifyEar:
    """Hears notifications, by psycopg or psycopg2."""

    name = "NOTIFY"
    deaf_because = ""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._channel = Notifications(alias)
        self._waiting = Waiting()
        self._connection: BaseDatabaseWrapper | None = None
        self._heard_meanwhile: list[str] = []
        self._is_lent = False
        self._era = 0

    def open(self) -> None:
        self._era = threads.era()
        self._heard_meanwhile, self._is_lent = [], False
        self._connection = connection = own_connection(self._alias)
        name = name_of(connection)
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {connection.ops.quote_name(name)}")

    def hear(self, seconds: float) -> list[str]:
        if self._connection is None or self._connection.connection is None:
            raise OperationalError("the connection that listens is closed")
        if self._era != threads.era():
            # Another thread found no server at the end of its line, or one that takes no writes any more.
            raise OperationalError("the database was lost")
        driver_connection = self._connection.connection
        with self._connection.wrap_database_errors:
            if self._is_lent and (words := self._overheard(driver_connection)):
                return words
            self._waiting.until_readable(driver_connection.fileno(), seconds)
            return _notified(driver_connection)

    def say(self, text: str) -> None:
        """Say it through the ordinary connection of this thread, which a pooler may stand behind."""
        try:
            self._channel.send(text)
        finally:
            threads.drop(self._alias)

    def by_its_line(self, ask: Callable[[], bool]) -> bool:
        line = self._connection
        if line is None or not _can_prepare(line):
            return False
        if not self._is_lent:
            self._lend(line)
        ordinary = connections[self._alias]
        connections[self._alias] = line
        begun = elapsed()
        try:
            return ask()
        finally:
            connections[self._alias] = ordinary
            if elapsed() - begun >= SLOW:
                _plan_anew(line)

    def close(self) -> None:
        self._waiting.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            threads.close(connection)

    def interrupt(self) -> None:
        self._waiting.interrupt()

    def _lend(self, line: Any) -> None:
        line.connection.add_notify_handler(lambda notification: self._heard_meanwhile.append(notification.payload))
        self._is_lent = True
        with line.cursor() as cursor:
            cursor.execute(ONE_PLAN)
        line.connection.prepare_threshold = _SENT_BEFORE

    def _overheard(self, connection: Any) -> list[str]:
        """Return what was said while the line was used: an answer that is read brings it along."""
        words, self._heard_meanwhile = self._heard_meanwhile, []
        return words + _read(connection.pgconn)


def _plan_anew(line: BaseDatabaseWrapper) -> None:
    """Let what is prepared be planned for the tables as they are now."""
    with suppress(Error), line.cursor() as cursor:  # a line that is gone is noticed by whoever hears by it
        cursor.execute(_PLAN_ANEW)


def own_connection(alias: str) -> BaseDatabaseWrapper:
    """Return a new connection with the settings of ``alias``, in autocommit and in no pool; psycopg binds there."""
    ordinary = connections[alias]
    options = {key: value for key, value in ordinary.settings_dict["OPTIONS"].items() if key != "pool"}
    if _can_prepare(ordinary):
        options["server_side_binding"] = True
    settings = {**ordinary.settings_dict, "AUTOCOMMIT": True, "OPTIONS": {**_KEEPALIVES, **options}}
    return type(ordinary)(settings, alias)


def _can_prepare(connection: Any) -> bool:
    """Tell whether it is of psycopg, and not of psycopg2."""
    return hasattr(connection.Database, "ClientCursor")


def _notified(connection: Any) -> list[str]:
    pgconn = getattr(connection, "pgconn", None)
    if pgconn is None:  # psycopg2
        connection.poll()
        found, connection.notifies[:] = list(connection.notifies), []
        return [notification.payload for notification in found]
    pgconn.consume_input()
    return _read(pgconn)


def _read(pgconn: Any) -> list[str]:
    payloads = []
    while (notification := pgconn.notifies()) is not None:
        payloads.append(notification.extra.decode("ascii", "replace"))
    return payloads
