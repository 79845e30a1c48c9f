"""Decide what a due cron fires: the policies of catch-up and overlap, as one pure function."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from .backlog import MissedRun, backlog_of, next_due
from .cron import CatchUp, FireOutcome, Overlap

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from .backlog import Backlog
    from .cron import CronSnapshot

__all__ = ["FiringPlan", "MissedRun", "PlannedFire", "jitter_of", "overlap_key_of", "plan_firing"]

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFire:
    """One occurrence that becomes a job; ``lateness`` is how long after it that was decided.

    The outcome is ``enqueued`` within the grace for misfires, ``caught_up`` later than that.
    """

    due_at: datetime
    outcome: FireOutcome
    lateness: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringPlan:
    """What to write when a cron is fired: the jobs, the missed runs and the next due time.

    ``len(fires) + missed`` is the number of occurrences that elapsed. ``fires`` stand in
    the order in which their jobs are to start, oldest first. ``cancels_live_jobs``: what is
    left of the occurrences before is canceled for them.
    """

    fires: tuple[PlannedFire, ...] = ()
    missed_runs: tuple[MissedRun, ...] = ()
    missed: int = 0
    first_missed_at: datetime | None = None
    next_run_at: datetime | None = None
    cancels_live_jobs: bool = False


def plan_firing(
    cron: CronSnapshot,
    now: datetime,
    *,
    catchup_cap: int,
    misfire_grace: timedelta,
    live_jobs: int = 0,
) -> FiringPlan:
    """Decide which elapsed occurrences of ``cron`` become jobs, and when it is due next.

    Elapsed are the stored ``next_run_at`` and every occurrence after it until ``now``, the
    store's clock, or until the cron's ``end``. The next due time lies behind all of them; a
    cron that is not due yet keeps its own. The cost does not grow with the backlog, beyond
    the ``catchup_cap`` jobs that fire_all may plan. ``live_jobs`` counts the pending and
    running jobs of this cron. Raise InvalidSchedule when the row's spec or zone is bad.
    """
    if cron.next_run_at is None or cron.next_run_at > now:
        return FiringPlan(next_run_at=cron.next_run_at)
    following = next_due(cron, now)
    backlog = backlog_of(cron, now)
    if backlog is None:
        return FiringPlan(next_run_at=following)
    if cron.overlap == Overlap.SKIP and live_jobs > 0:
        chosen: list[datetime] = []
        missed = backlog.before(
            None, FireOutcome.SKIPPED_OVERLAP, "an earlier job of this cron was still pending or in progress"
        )
    else:
        chosen, reason = _choose(backlog, now, catchup_cap, misfire_grace)
        missed = backlog.before(chosen[0] if chosen else None, FireOutcome.MISSED, reason)
    return FiringPlan(
        fires=tuple(_planned(due_at, now, misfire_grace) for due_at in chosen),
        missed_runs=() if missed is None else (missed,),
        missed=0 if missed is None else missed.count,
        first_missed_at=None if missed is None else missed.due_at,
        next_run_at=following,
        cancels_live_jobs=bool(chosen) and cron.overlap == Overlap.CANCEL_PREVIOUS,
    )


def overlap_key_of(cron: CronSnapshot) -> str:
    """Give the key that the jobs of a cron share of which one may be out at a time, or ""."""
    return "" if cron.overlap == Overlap.ALLOW else f"cron:{cron.id}"


def jitter_of(cron_id: UUID, jitter: timedelta) -> timedelta:
    """Choose the delay of a cron's jobs within ``[0, jitter]``.

    Always the same for one cron, so that its jobs keep their order.
    """
    if jitter <= timedelta(0):
        return timedelta(0)
    digest = int.from_bytes(sha256(cron_id.bytes).digest())
    return digest % (jitter // _MICROSECOND + 1) * _MICROSECOND


def _choose(backlog: Backlog, now: datetime, catchup_cap: int, misfire_grace: timedelta) -> tuple[list[datetime], str]:
    """Pick the newest occurrences that become jobs, and say why the older ones do not."""
    cron = backlog.cron
    if cron.catch_up == CatchUp.SKIP:
        latest = backlog.latest
        # Without the grace a loop that is a second late would starve a cron of every second.
        chosen = [latest] if now - latest <= misfire_grace else []
        return chosen, "nobody fired it in time, and catch_up is skip"
    # Jobs that wait for one another, or cancel one another, would only pile up.
    if cron.catch_up == CatchUp.FIRE_ALL and cron.overlap == Overlap.ALLOW:
        return backlog.newest(catchup_cap), f"older than the newest {catchup_cap} that fire_all catches up"
    return [backlog.latest], "a later occurrence stands for the backlog"


def _planned(due_at: datetime, now: datetime, misfire_grace: timedelta) -> PlannedFire:
    lateness = now - due_at
    outcome = FireOutcome.ENQUEUED if lateness <= misfire_grace else FireOutcome.CAUGHT_UP
    return PlannedFire(due_at=due_at, outcome=outcome, lateness=lateness)
