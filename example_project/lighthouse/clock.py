"""The one place of the example that reads a clock."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Give the host's time: good enough to draw a sky and to stamp a log line.

    Nothing is scheduled by it; due times are the scheduler's, on the database's clock.
    """
    return datetime.now(UTC)  # noqa: TID251
