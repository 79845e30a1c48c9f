"""UUIDv7 identifiers that grow within a process (RFC 9562, section 5.7 and 6.2)."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

# Twelve bits behind the milliseconds count ids of one millisecond; the counter
# may run into the next millisecond, so the order holds whatever the rate.
_COUNTER_BITS = 12
_COUNTER_MASK = (1 << _COUNTER_BITS) - 1
_NOISE_MASK = (1 << 62) - 1


class _Stamps:
    """The 60 bits of (milliseconds, counter), each greater than the one before. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self, count: int = 1) -> int:
        """Return the first of so many that follow each other."""
        stamp = (time.time_ns() // 1_000_000) << _COUNTER_BITS
        with self._lock:
            first = stamp if stamp > self._last else self._last + 1
            self._last = first + count - 1
            return first


_stamps = _Stamps()


def uuid7() -> UUID:
    """Return a new UUIDv7, greater than every one this process made before.

    Safe in threads. The wall clock only seeds the order; nothing is decided by it.
    """
    return _uuid7(_stamps.next(), int.from_bytes(os.urandom(8)))


def uuid7s(count: int) -> list[UUID]:
    """Return so many new ones, in their order."""
    first, noise = _stamps.next(count), os.urandom(8 * count)
    return [_uuid7(first + at, int.from_bytes(noise[8 * at : 8 * at + 8])) for at in range(count)]


def _uuid7(stamp: int, noise: int) -> UUID:
    milliseconds, counter = stamp >> _COUNTER_BITS, stamp & _COUNTER_MASK
    return UUID(int=(milliseconds << 80) | (0x7 << 76) | (counter << 64) | (0x2 << 62) | (noise & _NOISE_MASK))


def first_id(moment: datetime) -> UUID:
    """Return the least UUIDv7 of the millisecond ``moment``: whatever was made before it has a smaller one."""
    milliseconds = max(0, (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))
    return UUID(int=(milliseconds << 80) | (0x7 << 76) | (0x2 << 62))
