"""The occurrences of a cron that have elapsed and that nobody has fired yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from .occurrences import count_occurrences, first_occurrence, latest_run, occurrences_between

if TYPE_CHECKING:
    from datetime import datetime

    from .cron import CronSnapshot, FireOutcome

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedRun:
    """Consecutive occurrences that become no job: ``count`` of them, both ends included."""

    due_at: datetime
    last_due_at: datetime
    count: int
    outcome: FireOutcome
    reason: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """``count`` occurrences of a cron, from its stored due time until an instant.

    The stored due time is one of them whatever the schedule says by now: it was promised.
    """

    cron: CronSnapshot
    first: datetime
    until: datetime
    count: int

    @property
    def latest(self) -> datetime:
        """Give the newest occurrence."""
        return self._last_until(self.until)

    def newest(self, limit: int) -> list[datetime]:
        """List at most ``limit`` of the newest occurrences, oldest first."""
        cron = self.cron
        later = occurrences_between(cron.spec, cron.tz, self.first, self.until, limit, anchor=cron.anchor)
        return later if len(later) >= limit else [self.first, *later]

    def before(self, kept: datetime | None, outcome: FireOutcome, reason: str) -> MissedRun | None:
        """Give the run of occurrences older than ``kept``, or of all when it is None."""
        if kept == self.first:
            return None
        if kept is None:
            last, count = self.latest, self.count
        else:
            last = self._last_until(kept - _MICROSECOND)
            count = 1 + self._count_after_first(last)
        return MissedRun(due_at=self.first, last_due_at=last, count=count, outcome=outcome, reason=reason)

    def _last_until(self, until: datetime) -> datetime:
        found = latest_run(self.cron.spec, self.cron.tz, until, anchor=self.cron.anchor)
        return self.first if found is None else max(self.first, found)

    def _count_after_first(self, until: datetime) -> int:
        cron = self.cron
        return count_occurrences(cron.spec, cron.tz, self.first, until, anchor=cron.anchor)


def backlog_of(cron: CronSnapshot, now: datetime) -> Backlog | None:
    """Take stock of a cron at ``now``; None when nothing has elapsed, or all after its ``end``.

    The cost does not grow with the backlog. Raise InvalidSchedule for a bad spec or zone.
    """
    first = cron.next_run_at
    until = now if cron.end is None else min(now, cron.end)
    if first is None or first > until:
        return None
    later = count_occurrences(cron.spec, cron.tz, first, until, anchor=cron.anchor)
    return Backlog(cron, first, until, 1 + later)


def next_due(cron: CronSnapshot, now: datetime) -> datetime | None:
    """Find the first occurrence of a cron after ``now`` and within its ``start`` and ``end``."""
    return first_occurrence(cron.spec, cron.tz, now, anchor=cron.anchor, start=cron.start, end=cron.end)
