"""LISTEN, on a connection that is used for nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import OperationalError, connections

from django_helisched.driver import connections as threads
from django_helisched.driver.waking.ear import Waiting
from django_helisched.stores.orm.channel_notify import Notifications, name_of

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

# A silent line may have been dead for hours. The kernel asks, so that no statement has to.
_KEEPALIVES = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


class NotifyEar:
    """Hears notifications, by psycopg or psycopg2."""

    name = "NOTIFY"
    deaf_because = ""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._channel = Notifications(alias)
        self._waiting = Waiting()
        self._connection: BaseDatabaseWrapper | None = None
        self._era = 0

    def open(self) -> None:
        self._era = threads.era()
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
        self._waiting.until_readable(driver_connection.fileno(), seconds)
        with self._connection.wrap_database_errors:
            return _notified(driver_connection)

    def say(self, text: str) -> None:
        """Say it through the ordinary connection of this thread, which a pooler may stand behind."""
        try:
            self._channel.send(text)
        finally:
            threads.drop(self._alias)

    def close(self) -> None:
        self._waiting.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            threads.close(connection)

    def interrupt(self) -> None:
        self._waiting.interrupt()


def own_connection(alias: str) -> BaseDatabaseWrapper:
    """Return a new connection with the settings of ``alias``, in autocommit and in no pool."""
    ordinary = connections[alias]
    options = {key: value for key, value in ordinary.settings_dict["OPTIONS"].items() if key != "pool"}
    settings = {**ordinary.settings_dict, "AUTOCOMMIT": True, "OPTIONS": {**_KEEPALIVES, **options}}
    return type(ordinary)(settings, alias)


def _notified(connection: Any) -> list[str]:
    pgconn = getattr(connection, "pgconn", None)
    if pgconn is None:  # psycopg2
        connection.poll()
        found, connection.notifies[:] = list(connection.notifies), []
        return [notification.payload for notification in found]
    pgconn.consume_input()
    payloads = []
    while (notification := pgconn.notifies()) is not None:
        payloads.append(notification.extra.decode("ascii", "replace"))
    return payloads
