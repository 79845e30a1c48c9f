"""The database's own time."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connections

from django_helisched.stores.clock import CarriedClock

# The time now, not of the transaction's start: a reading may happen inside a long one.
_STATEMENTS = {
    "postgresql": "SELECT clock_timestamp()",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
    "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
}


def database_clock(alias: str) -> CarriedClock:
    """Return a clock that asks the database ``alias`` rarely and carries the answer."""
    return CarriedClock(lambda: read_time(alias))


def read_time(alias: str) -> datetime:
    """Return the database's time, aware, in UTC. Raises what the database raises."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENTS[connection.vendor])
        (moment,) = cursor.fetchone()
    read: datetime = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
