"""Take back what nobody holds any more: lapsed leases, expired jobs, unknown functions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.db import connections, transaction

from django_helisched.jobs.job import Hold, State
from django_helisched.jobs.leases import Lapse, judge_lapses
from django_helisched.jobs.outcome import decide_expiry
from django_helisched.models import Job
from django_helisched.stores.base import SweepAnswer
from django_helisched.stores.orm.batching import completing_batches
from django_helisched.stores.orm.connection import once_more
from django_helisched.stores.orm.ending import end_row, enqueue_follow_up
from django_helisched.stores.orm.locking import locked_jobs
from django_helisched.stores.orm.operating import cancel_descendants, lock_family

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from django_helisched.jobs.job import JobSnapshot
    from django_helisched.jobs.leases import Sighting
    from django_helisched.jobs.outcome import Outcome

CHUNK = 100  # rows of one transaction, so that no lock is held long


def sweep(
    alias: str,
    seen: Mapping[UUID, Sighting],
    *,
    lease: timedelta,
    decide_loss: Callable[[JobSnapshot], Outcome],
    new_id: Callable[[], UUID],
    now: datetime,
) -> SweepAnswer:
    """Take back lapsed leases; see JobStore.sweep."""
    ripe, waiting = judge_lapses(_lapses(alias, now), seen, now=now, lease=lease)
    swept: list[tuple[JobSnapshot, Outcome]] = []
    for start in range(0, len(ripe), CHUNK):
        chunk = ripe[start : start + CHUNK]
        swept += once_more(alias, partial(_take_back, alias, chunk, decide_loss, new_id, now))
    return SweepAnswer(swept=tuple(swept), seen=waiting)


def _lapses(alias: str, now: datetime) -> list[Lapse]:
    rows = Job.objects.using(alias).filter(state=State.IN_PROGRESS.value, lease_expires_at__lt=now).order_by("id")
    return [
        Lapse(job_id=job_id, fence=fence, lease_expires_at=expires_at)
        for job_id, fence, expires_at in rows.values_list("id", "fence", "lease_expires_at")
        if expires_at is not None
    ]


def _take_back(
    alias: str,
    ripe: Sequence[Lapse],
    decide_loss: Callable[[JobSnapshot], Outcome],
    new_id: Callable[[], UUID],
    now: datetime,
) -> list[tuple[JobSnapshot, Outcome]]:
    lapses = {lapse.job_id: lapse for lapse in ripe}
    swept = []
    with transaction.atomic(using=alias), completing_batches(alias, new_id=new_id, now=now):
        for job in locked_jobs(alias, lapses, skip_locked=True):
            if job.state != State.IN_PROGRESS or _lapse_of(job) != lapses[job.id]:
                continue
            outcome = decide_loss(job)
            # A family that somebody holds can wait for the next round; everybody else's jobs cannot.
            if outcome.state is State.CANCELED and not lock_family(alias, job.id):
                continue
            end_row(connections[alias], job, outcome, now)
            enqueue_follow_up(alias, job, outcome, new_id, now)
            swept.append((job, outcome))
        canceled = [job.id for job, outcome in swept if outcome.state is State.CANCELED]
        cancel_descendants(alias, canceled, new_id=new_id, now=now)
    return swept


def _lapse_of(job: JobSnapshot) -> Lapse | None:
    if job.lease_expires_at is None:
        return None
    return Lapse(job_id=job.id, fence=job.fence, lease_expires_at=job.lease_expires_at)


def expire(alias: str, *, unknown_grace: timedelta, limit: int, new_id: Callable[[], UUID], now: datetime) -> int:
    """Fail pending jobs whose time is over; see JobStore.expire."""
    pending = Job.objects.using(alias).filter(state=State.PENDING.value)
    late = pending.filter(expires_at__lt=now).order_by("expires_at", "id")
    held = pending.filter(hold=Hold.UNKNOWN_FUNCTION.value, held_at__lt=now - unknown_grace)
    # The order of the hot index: by id, some databases would read every pending row there is.
    unknown = held.exclude(expires_at__lt=now).order_by("queue", "-priority", "next_run_at", "id")
    failed = 0
    # One look for both: most of the time there is nothing.
    some = late.order_by().values_list("id").union(unknown.order_by().values_list("id"), all=True)
    for rows in (late, unknown) if some[:1] else ():
        ids = list(rows.values_list("id", flat=True)[:limit])
        for start in range(0, len(ids), CHUNK):
            failed += once_more(alias, partial(_fail, alias, ids[start : start + CHUNK], unknown_grace, new_id, now))
    return failed


def _fail(alias: str, ids: Sequence[UUID], unknown_grace: timedelta, new_id: Callable[[], UUID], now: datetime) -> int:
    failed = 0
    with transaction.atomic(using=alias), completing_batches(alias, new_id=new_id, now=now):
        for job in locked_jobs(alias, ids, skip_locked=True):
            outcome = decide_expiry(job, now=now, unknown_grace=unknown_grace)
            if job.state == State.PENDING and outcome is not None:
                end_row(connections[alias], job, outcome, now)
                enqueue_follow_up(alias, job, outcome, new_id, now)
                failed += 1
    return failed
