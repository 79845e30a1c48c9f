"""What a worker does with the claims it holds, short of settling them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from django_helisched.jobs.job import ClaimedJob, Hold, JobSnapshot, State
from django_helisched.jobs.outcome import Outcome
from django_helisched.models import Job
from django_helisched.stores.base import HeartbeatAnswer
from django_helisched.stores.orm.batching import completing_batches
from django_helisched.stores.orm.limiting import limit_hold
from django_helisched.stores.orm.locking import locked_jobs
from django_helisched.stores.orm.operating import cancel_descendants, end_canceled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID


def start(alias: str, claim: ClaimedJob, now: datetime) -> bool:
    """Record that an at-most-once body begins; see JobStore.start."""
    return bool(_held(alias, claim).update(started_at=now))


def heartbeat(alias: str, claims: Sequence[ClaimedJob], *, lease_expires_at: datetime) -> HeartbeatAnswer:
    """Renew leases; see JobStore.heartbeat."""
    fences = {claim.id: claim.fence for claim in claims}
    with transaction.atomic(using=alias):
        reached = locked_jobs(alias, fences, skip_locked=True)
        held = [job for job in reached if _is_held(job, fences[job.id])]
        Job.objects.using(alias).filter(pk__in=[job.id for job in held]).update(lease_expires_at=lease_expires_at)
    asked = {job.id for job in held if job.cancel_requested_at is not None}
    lost = {job.id for job in reached} - {job.id for job in held}
    missing = set(fences) - {job.id for job in reached}
    if missing:
        lost |= _lost_among(alias, missing, fences)
    return HeartbeatAnswer(lost=frozenset(lost), cancel_requested=frozenset(asked))


def _lost_among(alias: str, missing: set[UUID], fences: dict[UUID, int]) -> set[UUID]:
    """Return which rows are gone or another's; one that is only locked is neither."""
    rows = Job.objects.using(alias).filter(pk__in=missing, state=State.IN_PROGRESS.value)
    still = {job_id for job_id, fence in rows.values_list("id", "fence") if fence == fences[job_id]}
    return missing - still


def release(
    alias: str, claims: Sequence[ClaimedJob], *, new_id: Callable[[], UUID], now: datetime, hold: Hold = Hold.NONE
) -> int:
    """Give claims back unrun, held back from other claims where ``hold`` says so."""
    fences = {claim.id: claim.fence for claim in claims}
    changes: dict[str, Any] = {
        "state": State.PENDING.value,
        "lease_holder": None,
        "lease_expires_at": None,
        "started_at": None,
        **({"hold": hold.value, "held_at": now} if hold else limit_hold(now)),
    }
    with transaction.atomic(using=alias), completing_batches(alias, new_id=new_id, now=now):
        held = [job for job in locked_jobs(alias, fences) if _is_held(job, fences[job.id])]
        free = [job.id for job in held if job.cancel_requested_at is None]
        Job.objects.using(alias).filter(pk__in=free).update(**changes)
        asked = [job for job in held if job.cancel_requested_at is not None]
        for job in asked:
            end_canceled(alias, job, Outcome(state=State.CANCELED, attempt=None), new_id=new_id, now=now)
        cancel_descendants(alias, [job.id for job in asked], new_id=new_id, now=now)
    return len(held)


def unhold_known(alias: str, fn_paths: Sequence[str], now: datetime) -> int:
    """Lift the hold of jobs whose function is known; see JobStore.unhold_known."""
    held = Job.objects.using(alias).filter(state=State.PENDING.value, hold=Hold.UNKNOWN_FUNCTION.value)
    return sum(
        held.filter(fn_path__in=fn_paths[start : start + 500]).update(**limit_hold(now))
        for start in range(0, len(fn_paths), 500)
    )


def _held(alias: str, claim: ClaimedJob) -> Any:
    return Job.objects.using(alias).filter(pk=claim.id, state=State.IN_PROGRESS.value, fence=claim.fence)


def _is_held(job: JobSnapshot, fence: int) -> bool:
    return job.state == State.IN_PROGRESS and job.fence == fence
