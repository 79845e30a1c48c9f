"""From claims and settlements to the events that tell of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.driver.events import JobEvent, What
from django_helisched.jobs.job import State, Trigger
from django_helisched.jobs.outcome import AttemptOutcome
from django_helisched.stores.base import SettleAnswer

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from django_helisched.driver.settling import Settled
    from django_helisched.jobs.job import ClaimedJob, JobSnapshot
    from django_helisched.jobs.outcome import Outcome

_ENDS = {State.SUCCESS: What.JOB_SUCCEEDED, State.FAILED: What.JOB_FAILED, State.CANCELED: What.JOB_CANCELED}


def told(
    claim: ClaimedJob, what: What, *, started_at: datetime | None = None, text: str = "", error_class: str = ""
) -> JobEvent:
    """Return an event of a claim, with what it waited where it has just started."""
    # A later attempt is late by the back-off, which is no news of the cron.
    is_fire = claim.trigger == Trigger.CRON and claim.attempt == 1
    return JobEvent(
        what=what,
        job_id=claim.id,
        fn_path=claim.fn_path,
        queue=claim.queue,
        attempt=claim.attempt,
        failures=claim.attempts,
        max_failures=claim.max_failures,
        worker=claim.lease_holder,
        cron_id=claim.cron_id,
        waited=None if started_at is None else started_at - claim.next_run_at,
        late=None if started_at is None or not is_fire else started_at - claim.due_at,
        text=text,
        error_class=error_class,
    )


def what_ended(settled: Settled) -> What:
    """Return the name of an attempt's end."""
    outcome = settled.outcome
    if settled.answer is SettleAnswer.LOST:
        return What.JOB_LOST
    if outcome.state is State.PENDING:
        return What.JOB_SNOOZED if outcome.attempt is AttemptOutcome.SNOOZED else What.JOB_RETRIED
    return _ENDS[outcome.state]


def ended(claim: ClaimedJob, settled: Settled, ran: timedelta) -> JobEvent:
    """Return the event of an attempt's end."""
    outcome = settled.outcome
    return JobEvent(
        what=what_ended(settled),
        job_id=claim.id,
        fn_path=claim.fn_path,
        queue=claim.queue,
        attempt=claim.attempt,
        failures=claim.attempts + outcome.failures,
        max_failures=claim.max_failures,
        worker=claim.lease_holder,
        cron_id=claim.cron_id,
        ran=ran,
        retry_in=outcome.retry_in,
        error_class=outcome.report.error_class,
        text=outcome.report.line,
    )


def swept(job: JobSnapshot, outcome: Outcome) -> JobEvent:
    """Return the event of a job that was taken back from another worker."""
    return JobEvent(
        what=What.JOB_SWEPT,
        job_id=job.id,
        fn_path=job.fn_path,
        queue=job.queue,
        attempt=job.attempt_count + 1,
        failures=job.losses + outcome.losses,
        worker=job.lease_holder or "",
        cron_id=job.cron_id,
        retry_in=outcome.retry_in,
        error_class=outcome.report.error_class,
        text=outcome.report.line or "its worker stopped before it began",
    )
