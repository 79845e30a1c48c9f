"""How far jobs have come: a row of its own for each that reports, so that the hot row stays still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models import F

from django_helisched.jobs.job import State
from django_helisched.jobs.progress import ProgressReport, ProgressSnapshot
from django_helisched.models import Job, Progress

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django_helisched.jobs.job import ClaimedJob

_REPORT = ("fence", "done", "total", "message", "updated_at")
_SNAPSHOT = ("done", "total", "message", "updated_at")


def report(alias: str, reports: Sequence[tuple[ClaimedJob, ProgressReport]], now: datetime) -> list[bool]:
    """Write reports of claims that still hold; see JobStore.progress."""
    wanted = [claim.id for claim, _ in reports]
    rows = Job.objects.using(alias).filter(pk__in=wanted, state=State.IN_PROGRESS.value)
    fences = dict(rows.values_list("id", "fence"))
    holds = [fences.get(claim.id) == claim.fence for claim, _ in reports]
    write_reports(alias, [item for item, held in zip(reports, holds, strict=True) if held], now)
    return holds


def write_reports(alias: str, reports: Sequence[tuple[ClaimedJob, ProgressReport]], now: datetime) -> None:
    """Write reports over the older ones of their jobs, in the order of the jobs' ids."""
    if not reports:
        return
    # A claim that is lost between the look and this write leaves a row with an older fence, which nobody shows.
    rows = [
        Progress(
            job_id=claim.id,
            fence=claim.fence,
            done=each.done,
            total=each.total,
            message=each.message,
            updated_at=now,
        )
        for claim, each in sorted(reports, key=lambda item: item[0].id)
    ]
    options: dict[str, Any] = {"update_conflicts": True, "update_fields": _REPORT}
    if connections[alias].features.supports_update_conflicts_with_target:
        options["unique_fields"] = ("job",)
    Progress.objects.using(alias).bulk_create(rows, **options)


def read(alias: str, job_id: UUID) -> ProgressSnapshot | None:
    """Return the newest report of the latest claim; see JobStore.progress_of."""
    rows = Progress.objects.using(alias).filter(job_id=job_id, fence=F("job__fence")).values(*_SNAPSHOT)
    found = rows.first()
    return None if found is None else ProgressSnapshot(**found)
