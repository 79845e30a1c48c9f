"""Read what a pending job's wait depends on, by a few bounded queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import connections

from django_helisched import wiring
from django_helisched.inspection import fleet
from django_helisched.inspection.rows import alias, read_row, rows_of
from django_helisched.inspection.waiting import MAX_AHEAD, Around
from django_helisched.jobs.job import Hold, State
from django_helisched.models import Job, Limit, Queue
from django_helisched.stores.base import EVERY_QUEUE
from django_helisched.stores.orm.heads import heads

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

MAX_HOLDERS: Final = 10  # running jobs of a limit that are named


def around(job: Job) -> Around:
    """Return what stands around a pending job; for another one the time alone."""
    now = wiring.job_store().now()
    if job.state != State.PENDING:
        return Around(now=now)
    found: dict[str, Any] = {}
    if job.hold == Hold.OVERLAP:
        found = {"earlier": _earlier(job)}
    elif job.hold == Hold.LIMIT:
        limit, out = read_row(Limit, job.limit_key), wiring.job_store().out_under(job.limit_key)
        found = {"limit": limit, "out": out, "holders": _holders(job.limit_key)}
    elif not job.hold:
        found = {"ahead": _ahead(job, now)}
    return Around(now=now, switch=read_row(Queue, job.queue), workers=fleet.live_workers(), **found)


def _earlier(job: Job) -> tuple[UUID, str] | None:
    if job.cron_id is None:
        return None
    live = rows_of(Job).filter(cron_id=job.cron_id, state__in=[State.PENDING.value, State.IN_PROGRESS.value])
    return live.exclude(hold=Hold.OVERLAP.value).order_by("id").values_list("id", "state").first()


def _holders(limit_key: str) -> list[UUID]:
    running = rows_of(Job).filter(state=State.IN_PROGRESS.value, hold="", limit_key=limit_key)
    return list(running.order_by("id").values_list("id", flat=True)[:MAX_HOLDERS])


def _ahead(job: Job, now: datetime) -> int:
    """Count the due jobs of its queue that a claim takes first, priority by priority, to MAX_AHEAD + 1."""
    next_run_at: datetime | None = job.next_run_at  # None in a damaged row
    if next_run_at is None or next_run_at > now:
        return 0
    found = heads(connections[alias()], EVERY_QUEUE, now)
    before = {head.priority for head in found if head.queue == job.queue and head.due_at <= now}
    waiting = rows_of(Job).filter(state=State.PENDING.value, hold="", queue=job.queue)
    groups = [waiting.filter(priority=higher, next_run_at__lte=now) for higher in before if higher > job.priority]
    equals = waiting.filter(priority=job.priority)
    groups += [equals.filter(next_run_at__lt=next_run_at), equals.filter(next_run_at=next_run_at, id__lt=job.pk)]
    return _bounded_count(groups)


def _bounded_count(groups: list[QuerySet[Job]]) -> int:
    count = 0
    for group in groups:
        count += group.order_by()[: MAX_AHEAD + 1 - count].count()
        if count > MAX_AHEAD:
            break
    return count
