"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from django_helisched.stores.clock import cut


class ManualClock:
    """A store's clock for tests: shows ``start``, an aware datetime, until it is advanced. Safe in threads."""

    def __init__(self, start: datetime) -> None:
        self._lock = threading.Lock()
        self._now = cut(start)

    def now(self) -> datetime:
        """Return the time it was set to, in UTC, cut to milliseconds."""
        with self._lock:
            return self._now

    def resync(self) -> None:
        """Do nothing: there is no other clock to ask."""

    def advance(self, by: timedelta | float) -> datetime:
        """Move on by a timedelta or a number of seconds, and return the new time."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        with self._lock:
            self._now = cut(self._now + step)
            return self._now
