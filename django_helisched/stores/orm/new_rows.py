"""The rows that new jobs become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.jobs.job import JobSnapshot, State
from django_helisched.jobs.keys import digest_of
from django_helisched.jobs.records import maker

if TYPE_CHECKING:
    from django_helisched.jobs.job import NewJob

_snapshot = maker(JobSnapshot)


def new_row(job: NewJob, *, born_canceled: bool = False) -> JobSnapshot:
    """Return the row of a new job, which a child of a canceled parent is born canceled with."""
    # A job that never runs must not keep a later one from running.
    key = None if born_canceled else job.idempotency_key
    return _snapshot(
        id=job.id,
        fn_path=job.fn_path,
        kind=job.kind,
        at_most_once=job.at_most_once,
        state=State.CANCELED.value if born_canceled else State.PENDING.value,
        failure_reason="",
        hold="" if born_canceled else job.first_hold,
        held_at=job.created_at if job.first_hold and not born_canceled else None,
        queue=job.queue,
        priority=job.priority,
        due_at=job.due_at,
        next_run_at=job.next_run_at,
        expires_at=job.expires_at,
        timeout=job.timeout,
        attempts=0,
        max_failures=job.max_failures,
        losses=0,
        attempt_count=0,
        lease_holder=None,
        lease_expires_at=None,
        fence=0,
        cancel_requested_at=None,
        key_digest=None if key is None else digest_of(job.space, key),
        idempotency_key=job.idempotency_key or "",
        unique_until=job.unique_until,
        limit_key=job.limit_key,
        overlap_key=job.overlap_key,
        app_version=job.app_version,
        name=job.name,
        space=job.space,
        trigger=job.trigger,
        has_args=job.has_args,
        on_complete=job.on_complete,
        parent_id=job.parent_id,
        cron_id=job.cron_id,
        batch_id=job.batch_id,
        created_at=job.created_at,
        started_at=None,
        completed_at=job.created_at if born_canceled else None,
        last_error="",
    )


def new_payload(job: NewJob) -> list[Any] | None:
    """Return the values of a new job's JobArgs after the id, or None where it needs none."""
    if not job.has_args:
        return None
    return [list(job.args), dict(job.kwargs), job.context, dict(job.options), dict(job.meta)]
