"""From how a run ended to what happens to the job: pure decisions.

A run hands over an Ending; ``decide`` turns it into an Outcome, which a store
applies. No store ever decides whether to retry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django_helisched.jobs.backoff import DEFAULT_BACKOFF, Backoff, compute_backoff
from django_helisched.jobs.job import ClaimedJob, FailureReason, Hold, JobSnapshot, State
from django_helisched.jobs.records import maker
from django_helisched.jobs.words import AttemptOutcome

__all__ = [
    "MAX_LINE",
    "NO_ERROR",
    "AttemptOutcome",
    "Ending",
    "ErrorReport",
    "Outcome",
    "canceled",
    "decide",
    "decide_expiry",
    "decide_loss",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """An exception as text: class path, message, traceback and one line for lists."""

    error_class: str = ""
    error: str = ""
    traceback: str = ""
    line: str = ""


NO_ERROR = ErrorReport()

MAX_LINE = 300  # characters of ErrorReport.line, as Job.last_error holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a body ended, before anything is decided.

    ``outcome`` is what the Attempt row will say. ``retry_in`` is the delay the
    body asked for, ``counts`` whether the failure spends budget, ``retryable``
    False for what must not run again.
    """

    outcome: AttemptOutcome
    result: Any = None
    report: ErrorReport = NO_ERROR
    retry_in: timedelta | None = None
    counts: bool = True
    retryable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a store writes when an attempt ends.

    ``attempt`` None writes no Attempt row (expired, unknown function, release).
    ``retry_in`` is set exactly when ``state`` is pending; the store adds it to
    its own now. ``failures`` and ``losses`` are added to the job's counters.
    """

    state: State
    attempt: AttemptOutcome | None
    failure_reason: str = ""
    retry_in: timedelta | None = None
    failures: int = 0
    losses: int = 0
    result: Any = None
    report: ErrorReport = NO_ERROR


_outcome = maker(Outcome)
# Most bodies return nothing, and their outcomes are alike.
_SUCCESS = Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS)


def decide(
    claim: ClaimedJob,
    ending: Ending,
    *,
    rng: Callable[[], float],
    backoff: Backoff = DEFAULT_BACKOFF,
) -> Outcome:
    """Return what becomes of a job whose body ended like this.

    Success ends it; a snooze puts it back at no cost; a failure under the
    budget goes back with ``compute_backoff`` (or the delay it asked for); the
    ``max_failures``-th failure is final. A job that runs at most once has a
    budget of one, so what its body asks to repeat is always a snooze.
    """
    if ending.outcome is AttemptOutcome.SUCCESS:
        leaves_nothing = ending.result is None and ending.report is NO_ERROR
        return _SUCCESS if leaves_nothing else _ended(State.SUCCESS, ending)
    if ending.outcome is AttemptOutcome.CANCELED:
        return _ended(State.CANCELED, ending)
    if ending.retry_in is not None and (claim.at_most_once or not ending.counts):
        return _again(replace(ending, outcome=AttemptOutcome.SNOOZED), ending.retry_in, failures=0)
    failures = claim.attempts + 1
    if not ending.retryable:
        return _ended(State.FAILED, ending, reason=FailureReason.NON_RETRYABLE, failures=1)
    if failures >= claim.max_failures or claim.at_most_once:
        timed_out = ending.outcome is AttemptOutcome.TIMEOUT
        reason = FailureReason.TIMEOUT if timed_out else FailureReason.EXHAUSTED
        return _ended(State.FAILED, ending, reason=reason, failures=1)
    delay = ending.retry_in
    if delay is None:
        delay = compute_backoff(failures, rng, backoff)
    return _again(ending, delay, failures=1)


def canceled(ending: Ending) -> Outcome:
    """Return the outcome of an attempt whose job was canceled while it ran.

    The job ends canceled; the Attempt keeps what the body really did.
    """
    return _ended(State.CANCELED, ending)


def decide_loss(
    job: JobSnapshot, *, max_losses: int, rng: Callable[[], float], backoff: Backoff = DEFAULT_BACKOFF
) -> Outcome:
    """Return what becomes of a job whose worker let the lease lapse.

    A cancel request wins. A job that runs at most once is failed/lost if its
    body had started. Otherwise one loss is counted, never a failure, and the
    ``max_losses``-th is final.
    """
    report = ErrorReport(
        error_class="django_helisched.WorkerLost",
        error=f"worker {job.lease_holder} stopped reporting; its lease ended at {job.lease_expires_at}",
        line=f"worker {job.lease_holder} stopped reporting",
    )
    lost = Ending(outcome=AttemptOutcome.LOST, report=report)
    if job.at_most_once and job.started_at is None:
        never_began = State.PENDING if job.cancel_requested_at is None else State.CANCELED
        retry_in = timedelta(0) if never_began is State.PENDING else None
        return Outcome(state=never_began, attempt=None, retry_in=retry_in)
    if job.cancel_requested_at is not None:
        return replace(_ended(State.CANCELED, lost), losses=1)
    if job.at_most_once or job.losses + 1 >= max_losses:
        return replace(_ended(State.FAILED, lost, reason=FailureReason.LOST), losses=1)
    return replace(_again(lost, compute_backoff(job.losses + 1, rng, backoff), failures=0), losses=1)


def decide_expiry(job: JobSnapshot, *, now: datetime, unknown_grace: timedelta) -> Outcome | None:
    """Return how a pending job fails whose time is over, or None while it is not.

    Strictly after ``expires_at`` it is failed/expired; held as unknown_function
    for longer than ``unknown_grace``, failed/unknown_function.
    """
    if job.expires_at is not None and job.expires_at < now:
        return _never_ran(FailureReason.EXPIRED, f"not started before it expired at {job.expires_at}")
    held_at = job.held_at if job.hold == Hold.UNKNOWN_FUNCTION else None
    if held_at is not None and now - held_at > unknown_grace:
        return _never_ran(FailureReason.UNKNOWN_FUNCTION, f"no worker knows the function {job.fn_path} since {held_at}")
    return None


def _never_ran(reason: FailureReason, line: str) -> Outcome:
    report = ErrorReport(error=line, line=line[:MAX_LINE])
    return Outcome(state=State.FAILED, attempt=None, failure_reason=reason, report=report)


def _ended(state: State, ending: Ending, *, reason: str = "", failures: int = 0) -> Outcome:
    return _outcome(
        state=state,
        attempt=ending.outcome,
        failure_reason=reason,
        failures=failures,
        result=ending.result,
        report=ending.report,
    )


def _again(ending: Ending, delay: timedelta, *, failures: int) -> Outcome:
    return Outcome(
        state=State.PENDING,
        attempt=ending.outcome,
        retry_in=delay,
        failures=failures,
        report=ending.report,
    )
