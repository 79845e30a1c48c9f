"""What the run itself did to jobs and processes: the half of the evidence that is not in the database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

LEASE, SWEEP = 3.0, 2.0  # seconds; short, so that many are lost and found within a minute
SETTINGS = {
    "LEASE": LEASE,
    "SWEEP": SWEEP,
    "POLL": {"min": 0.05, "max": 0.5},
    "BACKOFF": {"initial": 0.05, "base": 2, "max": 2},
    "MISFIRE_GRACE": 1,
}

# The longest time from a worker's death to its jobs being free again.
RECOVERY = timedelta(seconds=LEASE + SWEEP + LEASE / 3)


@dataclass(frozen=True)
class Span:
    """A time in which a process stood still, by the database's clock."""

    worker: str
    begin: datetime
    end: datetime | None = None  # None: for ever, it was killed
    is_sudden: bool = True  # False: it was killed long after it had stood still


@dataclass
class Story:
    """What was done."""

    enqueued: list[UUID] = field(default_factory=list)
    rolled_back: list[UUID] = field(default_factory=list)
    requeued: Counter[UUID] = field(default_factory=Counter)
    spans: list[Span] = field(default_factory=list)
    last_looks: list[datetime] = field(default_factory=list)  # when the whole fleet was killed, or asked to finish
    counts: Counter[str] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)  # what no process may do, whatever is done to it

    def killed(self, *, in_time: bool) -> dict[str, datetime]:
        """Return when each killed worker died: those whose jobs others had to take back in time, or all the rest.

        Nobody could where the whole fleet ended before the time was over, and of a
        process that stood still first nobody knows what locks it held.
        """
        return {
            span.worker: span.begin
            for span in self.spans
            if span.end is None and (span.is_sudden and not self._is_fleet_over_after(span.begin)) is in_time
        }

    def _is_fleet_over_after(self, moment: datetime) -> bool:
        return any(timedelta(0) <= last - moment <= RECOVERY for last in self.last_looks)
