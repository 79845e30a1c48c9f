"""From one record of a job to the next, without a store."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django_helisched.jobs.follow_up import bounded
from django_helisched.jobs.job import (
    TERMINAL,
    AttemptSnapshot,
    ClaimedJob,
    Hold,
    JobSnapshot,
    NewJob,
    State,
    UniqueUntil,
)
from django_helisched.jobs.limit import hold_of
from django_helisched.jobs.outcome import AttemptOutcome, Outcome
from django_helisched.stores.clock import cut, later

if TYPE_CHECKING:
    from collections.abc import Mapping

_GIVEN = {item.name for item in fields(NewJob)} & {item.name for item in fields(JobSnapshot)}
_CLAIMED = {item.name for item in fields(ClaimedJob)} & {item.name for item in fields(JobSnapshot)}


def born(new: NewJob, digest: str | None) -> JobSnapshot:
    """Return the first record of a job."""
    given = {name: getattr(new, name) for name in _GIVEN} | {"hold": new.first_hold}
    return JobSnapshot(
        **{**given, "idempotency_key": new.idempotency_key or ""},
        state=State.PENDING,
        failure_reason="",
        held_at=new.created_at if new.first_hold else None,
        attempts=0,
        losses=0,
        attempt_count=0,
        lease_holder=None,
        lease_expires_at=None,
        fence=0,
        cancel_requested_at=None,
        key_digest=digest,
        has_args=new.has_args,
        started_at=None,
        completed_at=None,
        last_error="",
    )


def born_canceled(new: NewJob) -> JobSnapshot:
    """Return the first record of a job whose parent was canceled: over at once, without a key."""
    job = born(new, digest=None)
    return replace(job, state=State.CANCELED, hold=Hold.NONE, held_at=None, completed_at=new.created_at)


def claimed(job: JobSnapshot, *, worker_id: str, now: datetime, lease: timedelta) -> JobSnapshot:
    """Return ``job`` in the hands of a worker, under a new fence."""
    return replace(
        job,
        state=State.IN_PROGRESS,
        lease_holder=worker_id,
        lease_expires_at=cut(now + lease),
        fence=job.fence + 1,
        started_at=None if job.at_most_once else now,
    )


def claim_of(job: JobSnapshot, payload: Mapping[str, Any]) -> ClaimedJob:
    """Return what the worker gets."""
    return ClaimedJob(**{name: getattr(job, name) for name in _CLAIMED}, **payload)


def released(job: JobSnapshot, now: datetime) -> JobSnapshot:
    """Return ``job`` as if it had not been claimed, but for the fence and for the slot of its limit."""
    job = replace(job, state=State.PENDING, lease_holder=None, lease_expires_at=None, started_at=None)
    return waiting(job, now)


def waiting(job: JobSnapshot, now: datetime) -> JobSnapshot:
    """Return a pending job that nothing but its limit holds."""
    hold = hold_of(job.limit_key, job.next_run_at, now)
    return replace(job, hold=hold, held_at=now if hold else None)


def requeued(job: JobSnapshot, *, digest: str | None, now: datetime) -> JobSnapshot:
    """Return a terminal job as pending, due now, with a budget as new."""
    hold = Hold.OVERLAP if job.overlap_key else hold_of(job.limit_key, now, now)
    return replace(
        job,
        state=State.PENDING,
        failure_reason="",
        hold=hold,
        held_at=now if hold else None,
        next_run_at=now,
        expires_at=None,
        attempts=0,
        losses=0,
        cancel_requested_at=None,
        key_digest=digest,
        started_at=None,
        completed_at=None,
        last_error="",
    )


def ended(job: JobSnapshot, outcome: Outcome, now: datetime) -> JobSnapshot:
    """Return ``job`` after ``outcome``: over, or pending once more."""
    over = outcome.state in TERMINAL
    frees_key = over and job.unique_until == UniqueUntil.TERMINAL
    next_run_at = job.next_run_at if over else later(now, outcome.retry_in or timedelta(0))
    hold = Hold.NONE if over else hold_of(job.limit_key, next_run_at, now)
    return replace(
        job,
        state=outcome.state,
        failure_reason=outcome.failure_reason,
        hold=hold,
        held_at=now if hold else None,
        next_run_at=next_run_at,
        attempts=job.attempts + outcome.failures,
        losses=job.losses + outcome.losses,
        attempt_count=job.attempt_count + (outcome.attempt is not None),
        lease_holder=None,
        lease_expires_at=None,
        key_digest=None if frees_key else job.key_digest,
        completed_at=now if over else None,
        last_error=_last_error(job, outcome),
    )


def attempt_of(
    job: JobSnapshot, outcome: Outcome, *, started_at: datetime | None, now: datetime, log: str
) -> AttemptSnapshot:
    """Return how the attempt ended that ``job`` was in before ``outcome``."""
    return AttemptSnapshot(
        job_id=job.id,
        number=job.attempt_count + 1,
        outcome=str(outcome.attempt),
        started_at=started_at,
        ended_at=now,
        worker_id=job.lease_holder or "",
        error_class=outcome.report.error_class,
        error=outcome.report.error,
        traceback=outcome.report.traceback,
        result=bounded(outcome.result),
        log=log,
    )


def _last_error(job: JobSnapshot, outcome: Outcome) -> str:
    if outcome.state is State.SUCCESS:
        return ""
    if outcome.state is State.CANCELED or outcome.attempt is AttemptOutcome.SNOOZED:
        return job.last_error
    return outcome.report.line or job.last_error
