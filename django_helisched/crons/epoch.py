"""Instants as whole numbers since 1970-01-01 00:00 UTC, and back.

Arithmetic on aware datetimes of one zone ignores the zone's changes; on these it cannot.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A day of the wall clock, in seconds: none has a leap second.
DAY = 86_400
SECOND = timedelta(seconds=1)
MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


def seconds_of(moment: datetime) -> int:
    """Count whole seconds, rounded down. Raise ValueError for a naive datetime."""
    return _since_epoch(moment) // SECOND


def milliseconds_of(moment: datetime) -> int:
    """Count whole milliseconds, rounded down. Raise ValueError for a naive datetime."""
    return _since_epoch(moment) // MILLISECOND


def moment_of(seconds: int) -> datetime:
    """Give the UTC datetime of a second."""
    return EPOCH + timedelta(seconds=seconds)


def _since_epoch(moment: datetime) -> timedelta:
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; pass an aware datetime.")
    return moment - EPOCH
