"""Time as the database tells it, read rarely and carried by a clock nobody can set.

Only elapsed time of this machine is trusted: CLOCK_BOOTTIME where it exists
(it goes on while the machine sleeps), else the monotonic clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

RESYNC_AFTER = 30.0  # seconds a reading is carried; quartz drifts about a millisecond in that time
# Seconds: a reading that took longer may have waited, for its connection or for a processor, and its midpoint be off by
# half of that. Two processes that differ by so much meet a woken claim with jobs that are not due yet.
QUICK = 0.001
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HALF = 0.0005  # of a microsecond, in milliseconds: more than what a float of this size is off by
TRIES = 3  # for a quick one; the quickest of them is kept


class Clock(Protocol):
    """Where a store gets its time from."""

    def now(self) -> datetime:
        """Return the time as an aware UTC datetime, cut to milliseconds."""
        ...

    def resync(self) -> None:
        """Forget what was read, for instance after a failover."""
        ...


def cut(moment: datetime) -> datetime:
    """Return ``moment`` in UTC without its microseconds: every store keeps milliseconds."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def later(moment: datetime, delay: timedelta) -> datetime:
    """Return ``moment`` + ``delay`` cut to milliseconds; the last instant there is where that is too far."""
    try:
        return cut(moment + delay)
    except OverflowError:
        return cut(datetime.max.replace(tzinfo=UTC))


_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)
_read_clock = time.monotonic if _BOOTTIME is None else partial(time.clock_gettime, _BOOTTIME)


def elapsed() -> float:
    """Return seconds that pass steadily, whatever is done to the wall clock."""
    return _read_clock()


class CarriedClock:
    """A clock that asks ``read`` every RESYNC_AFTER seconds at most, again where that was slow, and carries the answer.

    Safe in threads: concurrent callers share one reading. A failed reading
    raises and is tried again by the next call; local time never stands in.
    """

    def __init__(self, read: Callable[[], datetime]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._generation = 0
        # Milliseconds from 1970 until elapsed() was zero, and what it was when that was read.
        self._reading: tuple[float, float] | None = None
        self._told = 0, _EPOCH

    def now(self) -> datetime:
        """Return the carried time, after a fresh reading where the last one is too old."""
        reading, now = self._reading, elapsed()
        if reading is None or now - reading[1] > RESYNC_AFTER:
            reading, now = self._resynced(), elapsed()
        milliseconds = int(reading[0] + now * 1000 + _HALF)
        told = self._told
        # Many short jobs begin in one millisecond, and making an instant costs as much as beginning one.
        if told[0] != milliseconds:
            told = self._told = milliseconds, _EPOCH + timedelta(milliseconds=milliseconds)
        return told[1]

    def resync(self) -> None:
        """Forget the reading; one that is on its way now is forgotten, too."""
        self._generation += 1
        self._reading = None

    def _resynced(self) -> tuple[float, float]:
        with self._lock:
            reading = self._reading
            if reading is not None and elapsed() - reading[1] <= RESYNC_AFTER:
                return reading
            generation = self._generation
            fresh = self._quickest()
            if generation == self._generation:
                self._reading = fresh
            return fresh

    def _quickest(self) -> tuple[float, float]:
        """Return the reading whose round trip was the shortest: its midpoint is off by half of it at most."""
        readings = []
        for _ in range(TRIES):
            before = elapsed()
            moment = self._read()
            took = elapsed() - before
            readings.append((took, moment, before + took / 2))
            if took <= QUICK:
                break
        _, moment, at = min(readings)
        return (moment - _EPOCH) / timedelta(milliseconds=1) - at * 1000, at
