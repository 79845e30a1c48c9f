"""Make up for missed occurrences of a cron."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django_helisched import conf, wiring
from django_helisched.crons.backfill import plan_backfill
from django_helisched.exceptions import InvalidOption
from django_helisched.functions import resolve
from django_helisched.functions.occurrence import Defaults, Occurrence, job_for
from django_helisched.functions.options import check_instant
from django_helisched.jobs.job import Trigger

if TYPE_CHECKING:
    from uuid import UUID

    from django_helisched.crons.backfill import BackfillPlan
    from django_helisched.crons.cron import CronSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """The occurrences made up for, or with a preview to be made up for, oldest first, and their jobs.

    ``left`` are missed occurrences of that time beyond the cap: backfill again for them.
    ``unknown`` are those of an earlier schedule, whose instants nobody knows any more.
    """

    due: tuple[datetime, ...] = ()
    job_ids: tuple[UUID, ...] = ()
    left: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, plan: BackfillPlan, job_ids: tuple[UUID, ...] = ()) -> Backfill:
        """Return what a plan comes to."""
        return cls(due=plan.due, job_ids=job_ids, left=plan.left, unknown=plan.unknown)


def planned(row: CronSnapshot, start: datetime, end: datetime) -> BackfillPlan:
    """Return which missed occurrences of that time can be made up for."""
    start, end = check_instant(start, "start"), check_instant(end, "end")
    if start > end:
        raise InvalidOption(f"start ({start}) must not be after end ({end}).")
    if row.archived_at is not None:
        raise InvalidOption(f'The cron "{row.name}" is archived, and fires nothing any more.')
    return plan_backfill(row, wiring.cron_store().fires_of(row.id, since=start, until=end), start, end)


def stored(row: CronSnapshot, plan: BackfillPlan) -> Backfill | None:
    """Store the jobs of a plan; None where the cron changed meanwhile."""
    resolve(row.fn_path)
    store = wiring.cron_store()
    settings, now = conf.get_settings(), store.now()
    defaults = Defaults(timeout=settings.timeout, max_failures=settings.max_failures, app_version=settings.app_version)
    jobs = [job_for(row, Occurrence(due_at=due_at, now=now, trigger=Trigger.BACKFILL), defaults) for due_at in plan.due]
    return Backfill.of(plan, tuple(job.id for job in jobs)) if store.backfill(row, plan, jobs) else None
