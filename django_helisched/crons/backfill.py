"""Make up for missed occurrences: only those that a Fire row still names, each once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from .cron import FireOutcome, FireSnapshot
from .occurrences import compute_next_run, count_occurrences, latest_run
from .refusals import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from .cron import CronSnapshot

MAX_BACKFILL = 1000
MISSED = frozenset({FireOutcome.MISSED.value, FireOutcome.SKIPPED_OVERLAP.value})

_BOTH_ENDS = 2
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """What stays missed of a run: ``count`` occurrences, both ends included, told as ``of`` was."""

    of: FireSnapshot
    due_at: datetime
    last_due_at: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """What to make up for, oldest first, and what that leaves of the missed runs.

    ``replaced`` are the Fire rows that go; ``remainders`` and one row for each of ``due`` come
    in their place. ``left`` counts further missed occurrences of that time, which another
    backfill can take; ``unknown`` those of an earlier schedule, whose instants nobody knows.
    """

    due: tuple[datetime, ...] = ()
    replaced: tuple[datetime, ...] = ()
    remainders: tuple[Remainder, ...] = ()
    left: int = 0
    unknown: int = 0


def fires_after(plan: BackfillPlan, cron_id: UUID, job_ids: Sequence[UUID], now: datetime) -> list[FireSnapshot]:
    """List the Fire rows that come in the place of the replaced ones; the jobs are those of ``plan.due``, in order."""
    fired = [
        FireSnapshot(
            cron_id=cron_id,
            due_at=due_at,
            last_due_at=due_at,
            count=1,
            outcome=FireOutcome.CAUGHT_UP.value,
            job_id=job_id,
            lateness=now - due_at,
            reason="backfilled",
            decided_at=now,
        )
        for due_at, job_id in zip(plan.due, job_ids, strict=True)
    ]
    missed = [
        replace(part.of, due_at=part.due_at, last_due_at=part.last_due_at, count=part.count) for part in plan.remainders
    ]
    return [*fired, *missed]


@dataclass(frozen=True, slots=True)
class _Listed:
    """The occurrences of a run that are all known: of one or two, both ends are."""

    instants: tuple[datetime, ...]

    def count(self, first: datetime, last: datetime) -> int:
        return sum(first <= instant <= last for instant in self.instants)

    def oldest(self, first: datetime, last: datetime, limit: int) -> list[datetime]:
        return [instant for instant in self.instants if first <= instant <= last][:limit]

    def newest(self, last: datetime) -> datetime:
        return max(instant for instant in self.instants if instant <= last)


@dataclass(frozen=True, slots=True)
class _Scheduled:
    """The occurrences of a longer run, as the schedule has them; none is listed that nobody asks for."""

    cron: CronSnapshot
    run: FireSnapshot

    def fits(self) -> bool:
        """Say whether the schedule has as many occurrences there as the run."""
        run = self.run
        return self.count(run.due_at, run.last_due_at) == run.count and self.newest(run.last_due_at) == run.last_due_at

    def count(self, first: datetime, last: datetime) -> int:
        cron, run = self.cron, self.run
        after = max(run.due_at, first - _MICROSECOND)
        later = count_occurrences(cron.spec, cron.tz, after, min(last, run.last_due_at), anchor=cron.anchor)
        return (first <= run.due_at <= last) + later

    def oldest(self, first: datetime, last: datetime, limit: int) -> list[datetime]:
        cron, run = self.cron, self.run
        listed = [run.due_at][:limit] if first <= run.due_at <= last else []
        found: datetime | None = max(run.due_at, first - _MICROSECOND)
        while found is not None and len(listed) < limit:
            found = compute_next_run(cron.spec, cron.tz, found, anchor=cron.anchor)
            if found is None or found > min(last, run.last_due_at):
                break
            listed.append(found)
        return listed

    def newest(self, last: datetime) -> datetime:
        found = latest_run(self.cron.spec, self.cron.tz, last, anchor=self.cron.anchor)
        return self.run.due_at if found is None else max(self.run.due_at, found)


def plan_backfill(
    cron: CronSnapshot, fires: Sequence[FireSnapshot], start: datetime, end: datetime, *, limit: int = MAX_BACKFILL
) -> BackfillPlan:
    """Choose the oldest ``limit`` missed occurrences from ``start`` to ``end``, both inclusive.

    ``fires`` are the cron's Fire rows of that time. The instants inside a run are those of the
    schedule as it is now; where they do not fit the run, it stems from an earlier schedule.
    The cost grows with the rows and with ``limit``, not with the length of a run.
    """
    due: list[datetime] = []
    replaced: list[datetime] = []
    remainders: list[Remainder] = []
    left = unknown = 0
    for run in fires:
        if run.outcome not in MISSED:
            continue
        occurrences = _occurrences_of(cron, run)
        if occurrences is None:
            unknown += run.count
            continue
        chosen = occurrences.oldest(start, end, limit - len(due))
        left += occurrences.count(start, end) - len(chosen)
        if chosen:
            due += chosen
            replaced.append(run.due_at)
            remainders += _around(run, occurrences, chosen)
    return BackfillPlan(
        due=tuple(due), replaced=tuple(replaced), remainders=tuple(remainders), left=left, unknown=unknown
    )


def _occurrences_of(cron: CronSnapshot, run: FireSnapshot) -> _Listed | _Scheduled | None:
    if run.count <= _BOTH_ENDS:
        return _Listed((run.due_at, run.last_due_at)[: run.count])
    scheduled = _Scheduled(cron, run)
    try:
        return scheduled if scheduled.fits() else None
    except InvalidSchedule:
        return None


def _around(run: FireSnapshot, occurrences: _Listed | _Scheduled, chosen: list[datetime]) -> list[Remainder]:
    remainders = []
    before = chosen[0] - _MICROSECOND
    if run.due_at <= before:
        count = occurrences.count(run.due_at, before)
        remainders.append(Remainder(of=run, due_at=run.due_at, last_due_at=occurrences.newest(before), count=count))
    after = chosen[-1] + _MICROSECOND
    if after <= run.last_due_at:
        [first] = occurrences.oldest(after, run.last_due_at, 1)
        count = occurrences.count(after, run.last_due_at)
        remainders.append(Remainder(of=run, due_at=first, last_due_at=run.last_due_at, count=count))
    return remainders
