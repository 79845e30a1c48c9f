"""Whether this process has watched for long enough to tell a dead worker from a silent database."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from django_helisched.driver.patience import LEASES
from django_helisched.jobs.leases import heartbeat_interval
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from datetime import datetime, timedelta


class Watch:
    """Since when the database has taken this process's writes without a gap, by the database's own clock.

    While it takes none (an outage, SQLite's lock in other hands, a clock set
    forward by a failover), nobody renews a lease. Whoever looks first afterwards
    would find all of them lapsed and nobody dead. Safe in threads.
    """

    def __init__(self, lease: timedelta) -> None:
        self._lease = lease
        self._since: datetime | None = None
        self._last: datetime | None = None
        self._wrote_at: float | None = None

    def wrote(self, now: datetime) -> None:
        """Note a write that has succeeded. The first one, and the first one after more than a lease, begin anew."""
        if self._since is None or self._last is None or now - self._last > self._lease:
            self._since = now
        self._last = now
        self._wrote_at = elapsed()

    def seconds_since_write(self) -> float:
        """Return how long ago a write has succeeded last."""
        return math.inf if self._wrote_at is None else elapsed() - self._wrote_at

    def wrote_within(self, span: timedelta, now: datetime) -> bool:
        """Tell whether a write has succeeded so short a time ago, by this machine's time and by the database's."""
        last = self._last
        is_lately = self.seconds_since_write() < span.total_seconds()
        return is_lately and last is not None and abs(now - last) < span

    def lease_to_judge_by(self, now: datetime) -> timedelta:
        """Return the lease by whose length lapses are to be judged now.

        It is the real one once the others have had the time for a heartbeat.
        Before that only what lapsed ten leases ago is dead beyond doubt: its
        worker has given up by itself.
        """
        watched = self._since is not None and now - self._since >= heartbeat_interval(self._lease)
        return self._lease if watched else LEASES * self._lease
