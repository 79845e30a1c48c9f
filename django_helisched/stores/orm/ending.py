"""End attempts and jobs: the writes behind settle, sweep, cancel and expire.

Each changes the row, writes the Attempt and enqueues the callback inside the
transaction that its caller opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_helisched.jobs.follow_up import bounded, follow_up_of, result_of
from django_helisched.jobs.job import TERMINAL, ClaimedJob, JobSnapshot, State, UniqueUntil
from django_helisched.jobs.limit import hold_of
from django_helisched.jobs.outcome import AttemptOutcome
from django_helisched.models import Attempt, Job, JobArgs
from django_helisched.stores.clock import later
from django_helisched.stores.orm.batching import note_end
from django_helisched.stores.orm.inserting import store_all
from django_helisched.stores.orm.new_rows import new_row
from django_helisched.stores.orm.rows import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.jobs.job import NewJob
    from django_helisched.jobs.outcome import Outcome

_ATTEMPT = (
    "job_id",
    "number",
    "outcome",
    "started_at",
    "ended_at",
    "worker_id",
    "error_class",
    "error",
    "traceback",
    "result",
    "log",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One ended attempt as its Attempt row tells it."""

    job_id: UUID
    number: int
    outcome: Outcome
    started_at: datetime | None
    worker_id: str
    log: str = ""


def write_ending(connection: BaseDatabaseWrapper, claim: ClaimedJob, outcome: Outcome, now: datetime) -> bool:
    """Apply an outcome under the claim's fence and tell whether the claim held.

    An outcome other than canceled is also refused while a cancel request stands.
    """
    table = columns(Job, ("next_run_at", "completed_at", "held_at", "id"), connection)
    terminal = outcome.state in TERMINAL
    next_run_at = claim.next_run_at if outcome.retry_in is None else later(now, outcome.retry_in)
    due, completed, held_at, key = table.adapt([next_run_at, now if terminal else None, now, claim.id])
    # A job that is to run again waits for its limit like any other.
    waits = (
        "hold = CASE WHEN limit_key = '' THEN '' ELSE %s END, held_at = CASE WHEN limit_key = '' THEN NULL ELSE %s END"
    )
    held, wait = ("", []) if terminal else (f"{waits}, ", [hold_of("any", next_run_at, now).value, held_at])
    freed = "CASE WHEN unique_until = 'terminal' THEN NULL ELSE key_digest END" if terminal else "key_digest"
    unasked = "" if outcome.state is State.CANCELED else " AND cancel_requested_at IS NULL"
    told, line = ("last_error", []) if _keeps_error(outcome) else ("%s", [outcome.report.line[:300]])
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table.table} SET state = %s, failure_reason = %s, attempts = attempts + %s, "
            "losses = losses + %s, attempt_count = attempt_count + %s, next_run_at = %s, completed_at = %s, "
            f"{held}last_error = {told}, lease_holder = NULL, lease_expires_at = NULL, key_digest = {freed} "
            f"WHERE id = %s AND state = 'in_progress' AND fence = %s{unasked}",
            [
                outcome.state.value,
                str(outcome.failure_reason),
                outcome.failures,
                outcome.losses,
                0 if outcome.attempt is None else 1,
                due,
                completed,
                *wait,
                *line,
                key,
                claim.fence,
            ],
        )
        return bool(cursor.rowcount == 1)


def _keeps_error(outcome: Outcome) -> bool:
    """Tell whether the job goes on showing the error it had: a cancel and a snooze are none."""
    return outcome.state is State.CANCELED or outcome.attempt is AttemptOutcome.SNOOZED


def write_attempts(connection: BaseDatabaseWrapper, ended: Sequence[Ended], now: datetime) -> None:
    """Insert the Attempt rows of attempts that ended now."""
    rows = [_attempt_values(attempt, now) for attempt in ended if attempt.outcome.attempt is not None]
    if not rows:
        return
    table = columns(Attempt, _ATTEMPT, connection)
    with connection.cursor() as cursor:
        cursor.execute(
            table.insert + ", ".join([table.placeholders] * len(rows)),
            [value for row in rows for value in table.adapt(row)],
        )


def _attempt_values(attempt: Ended, now: datetime) -> list[Any]:
    outcome = attempt.outcome
    report = outcome.report
    return [
        attempt.job_id,
        attempt.number,
        str(outcome.attempt),
        attempt.started_at,
        now,
        attempt.worker_id,
        report.error_class,
        report.error,
        report.traceback,
        bounded(outcome.result),
        attempt.log,
    ]


def end_row(connection: BaseDatabaseWrapper, job: JobSnapshot, outcome: Outcome, now: datetime, **extra: Any) -> None:
    """Apply an outcome to a row that the caller has locked and read as ``job``."""
    terminal = outcome.state in TERMINAL
    changes: dict[str, Any] = {
        "state": outcome.state.value,
        "failure_reason": str(outcome.failure_reason),
        "attempts": job.attempts + outcome.failures,
        "losses": job.losses + outcome.losses,
        "attempt_count": job.attempt_count + (0 if outcome.attempt is None else 1),
        "last_error": job.last_error if _keeps_error(outcome) else outcome.report.line[:300],
        "completed_at": now if terminal else None,
        "lease_holder": None,
        "lease_expires_at": None,
        **extra,
    }
    if outcome.retry_in is not None:
        changes["next_run_at"] = later(now, outcome.retry_in)
        hold = hold_of(job.limit_key, changes["next_run_at"], now)
        changes["hold"], changes["held_at"] = hold.value, now if hold else None
    if terminal:
        changes["hold"], changes["held_at"] = "", None
        if job.unique_until == UniqueUntil.TERMINAL:
            changes["key_digest"] = None
        note_end(job.batch_id)
    Job.objects.using(connection.alias).filter(pk=job.id).update(**changes)
    if outcome.attempt is not None:
        write_attempts(connection, [_ended(job, outcome)], now)


def _ended(job: JobSnapshot, outcome: Outcome) -> Ended:
    return Ended(
        job_id=job.id,
        number=job.attempt_count + 1,
        outcome=outcome,
        started_at=job.started_at,
        worker_id=job.lease_holder or "",
    )


def enqueue_follow_up(
    alias: str, job: JobSnapshot, outcome: Outcome, new_id: Callable[[], UUID], now: datetime
) -> None:
    """Store the callback of a job that has ended, where it has one."""
    if not job.on_complete or outcome.state not in TERMINAL:
        return
    stored: Mapping[str, Any] = (
        JobArgs.objects.using(alias).filter(pk=job.id).values("context", "options").first() or {}
    )
    follow_up = follow_up_of(
        job,
        context=stored.get("context"),
        options=stored.get("options") or {},
        result=result_of(outcome),
        new_id=new_id(),
        now=now,
    )
    store_follow_ups(alias, [follow_up])


def store_follow_ups(alias: str, jobs: Sequence[NewJob | None]) -> None:
    """Store callbacks; they have no parent and no key."""
    records = [(job, new_row(job)) for job in jobs if job is not None]
    if records:
        store_all(connections[alias], records)
