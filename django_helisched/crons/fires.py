"""The Fire rows that a firing leaves behind: what became of each occurrence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cron import FireSnapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from .catch_up import FiringPlan, MissedRun
    from .cron import CronSnapshot


# The room that the column has.
MAX_REASON = 300


def fires_made(cron: CronSnapshot, plan: FiringPlan, job_ids: Sequence[UUID], now: datetime) -> list[FireSnapshot]:
    """List the rows of a firing; the ids are of the jobs of ``plan.fires``, in order."""
    fired = [
        FireSnapshot(
            cron_id=cron.id,
            due_at=fire.due_at,
            last_due_at=fire.due_at,
            count=1,
            outcome=fire.outcome.value,
            job_id=job_id,
            lateness=fire.lateness,
            reason="",
            decided_at=now,
        )
        for fire, job_id in zip(plan.fires, job_ids, strict=True)
    ]
    return [*(fire_missed(cron.id, run, now) for run in plan.missed_runs), *fired]


def fire_missed(cron_id: UUID, run: MissedRun, now: datetime) -> FireSnapshot:
    """Give the row of occurrences that became no job."""
    return FireSnapshot(
        cron_id=cron_id,
        due_at=run.due_at,
        last_due_at=run.last_due_at,
        count=run.count,
        outcome=run.outcome.value,
        job_id=None,
        lateness=now - run.due_at,
        reason=run.reason[:MAX_REASON],
        decided_at=now,
    )


def is_behind(last_due_at: datetime, next_run_at: datetime | None) -> bool:
    """Tell whether a cron has left a row's last occurrence behind, so that nobody can fire it again."""
    return next_run_at is None or last_due_at < next_run_at
