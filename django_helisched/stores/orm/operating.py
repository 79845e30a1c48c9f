"""The operator's verbs: cancel and requeue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, connections, transaction

from django_helisched.jobs.job import TERMINAL, Hold, State
from django_helisched.jobs.keys import digest_of
from django_helisched.jobs.limit import hold_of
from django_helisched.jobs.outcome import AttemptOutcome, Outcome
from django_helisched.models import Job
from django_helisched.stores.orm.batching import completing_batches
from django_helisched.stores.orm.connection import is_duplicate_key, operator_transaction
from django_helisched.stores.orm.ending import end_row, enqueue_follow_up
from django_helisched.stores.orm.locking import in_chunks, locked_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from django_helisched.jobs.job import JobSnapshot

LIVE = [State.PENDING.value, State.IN_PROGRESS.value]


def cancel(alias: str, job_id: UUID, *, force: bool, new_id: Callable[[], UUID], now: datetime) -> bool:
    """Cancel a job and its descendants; see JobStore.cancel."""
    with operator_transaction(alias), completing_batches(alias, new_id=new_id, now=now):
        for job in locked_jobs(alias, [job_id]):
            if job.state in TERMINAL:
                return False
            _cancel_row(alias, job, force=force, new_id=new_id, now=now)
            cancel_descendants(alias, [job_id], new_id=new_id, now=now)
            return True
    return False


def cancel_descendants(alias: str, roots: Collection[UUID], *, new_id: Callable[[], UUID], now: datetime) -> None:
    """Cancel everything below ``roots``, through finished jobs too.

    The family is read first, so that its rows are locked by id, as everybody
    locks. Whoever held a row may have committed a child with it: so it is read
    again. A child of a running job that comes later is caught when that settles.
    """
    seen = set(roots)
    while family := _descendants(alias, seen):
        seen |= family
        for job in locked_jobs(alias, family):
            if job.state not in TERMINAL:
                _cancel_row(alias, job, force=False, new_id=new_id, now=now)


def lock_family(alias: str, root: UUID) -> bool:
    """Lock all descendants of a job, or tell that somebody holds one of them; never waits."""
    family = _descendants(alias, {root})
    return len(locked_jobs(alias, family, skip_locked=True)) == len(family)


def _descendants(alias: str, roots: Collection[UUID]) -> set[UUID]:
    seen = set(roots)
    generation = _children(alias, roots) - seen
    while generation:
        seen |= generation
        generation = _children(alias, generation) - seen
    return seen - set(roots)


def _children(alias: str, parents: Collection[UUID]) -> set[UUID]:
    children: set[UUID] = set()
    for chunk in in_chunks(sorted(parents)):
        children.update(Job.objects.using(alias).filter(parent_id__in=chunk).values_list("id", flat=True))
    return children


def _cancel_row(alias: str, job: JobSnapshot, *, force: bool, new_id: Callable[[], UUID], now: datetime) -> None:
    if job.state == State.IN_PROGRESS and not force:
        if job.cancel_requested_at is None:
            Job.objects.using(alias).filter(pk=job.id).update(cancel_requested_at=now)
        return
    running = job.state == State.IN_PROGRESS
    outcome = Outcome(state=State.CANCELED, attempt=AttemptOutcome.CANCELED if running else None)
    asked_at = job.cancel_requested_at or now
    voided: dict[str, Any] = {"fence": job.fence + 1, "cancel_requested_at": asked_at} if running else {}
    end_canceled(alias, job, outcome, new_id=new_id, now=now, **voided)


def end_canceled(
    alias: str, job: JobSnapshot, outcome: Outcome, *, new_id: Callable[[], UUID], now: datetime, **extra: Any
) -> None:
    """End a locked row as canceled, with its callback."""
    end_row(connections[alias], job, outcome, now, **extra)
    enqueue_follow_up(alias, job, outcome, new_id, now)


def live_jobs_of(alias: str, cron_id: UUID) -> QuerySet[Job]:
    """Return the jobs of a cron that are pending or in progress."""
    return Job.objects.using(alias).filter(cron_id=cron_id, state__in=LIVE)


def cancel_jobs_of(alias: str, cron_id: UUID, *, new_id: Callable[[], UUID], now: datetime) -> None:
    """Cancel the live jobs of a cron, and what is below them, inside the caller's transaction."""
    ids = list(live_jobs_of(alias, cron_id).values_list("id", flat=True))
    for job in locked_jobs(alias, ids):
        if job.state not in TERMINAL:
            _cancel_row(alias, job, force=False, new_id=new_id, now=now)
    if ids:
        cancel_descendants(alias, ids, new_id=new_id, now=now)


def requeue(alias: str, job_id: UUID, *, now: datetime) -> bool:
    """Put a terminal job back to pending; see JobStore.requeue."""
    with operator_transaction(alias):
        for job in locked_jobs(alias, [job_id]):
            return job.state in TERMINAL and _put_back(alias, job, now)
    return False


def _put_back(alias: str, job: JobSnapshot, now: datetime) -> bool:
    hold = Hold.OVERLAP if job.overlap_key else hold_of(job.limit_key, now, now)
    try:
        with transaction.atomic(using=alias):
            Job.objects.using(alias).filter(pk=job.id).update(
                state=State.PENDING.value,
                failure_reason="",
                hold=hold.value,
                held_at=now if hold else None,
                next_run_at=now,
                expires_at=None,
                attempts=0,
                losses=0,
                cancel_requested_at=None,
                started_at=None,
                completed_at=None,
                last_error="",
                key_digest=digest_of(job.space, job.idempotency_key) if job.idempotency_key else None,
            )
    except IntegrityError as error:
        if is_duplicate_key(error):
            return False
        raise
    return True
