"""Jobs, endings and shortcuts for the contract's tests."""

# ruff: noqa: S101

from __future__ import annotations

from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django_helisched.jobs.follow_up import follow_up_of, result_of
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import FailureReason, NewJob, State, Trigger
from django_helisched.jobs.outcome import AttemptOutcome, ErrorReport, Outcome, decide_loss
from django_helisched.stores.base import JobFilter, QueueFilter, Settlement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django_helisched.jobs.job import AttemptSnapshot, ClaimedJob, JobSnapshot
    from django_helisched.stores.base import JobStore, SettleAnswer, SweepAnswer
    from django_helisched.testing.clock import ManualClock

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
LEASE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)
TICK = timedelta(milliseconds=1)  # the smallest step of a store's time
GRACE = timedelta(days=1)
ODD_VALUES = [
    None,
    True,
    0,
    -1,
    2**80,
    1.5,
    1e22,
    5e-324,
    "",
    "é 日本 🙂",
    [],
    {},
    [[{"a": [None]}]],
    {"": {"b": False}},
]

CALLBACK = "shop.jobs.done"

loss = partial(decide_loss, max_losses=3, rng=lambda: 1.0)


def new_job(store: JobStore, **fields: Any) -> NewJob:
    """Return a job that is due now, unless ``fields`` say otherwise."""
    now = store.now()
    given = {"id": uuid7(), "fn_path": "shop.jobs.work", "created_at": now, "due_at": now, **fields}
    return NewJob(**{"next_run_at": max(given["due_at"], now), **given})


def enqueued(store: JobStore, **fields: Any) -> JobSnapshot:
    """Store one job and return it."""
    [result] = store.enqueue([new_job(store, **fields)])
    return result.job


def claimed(store: JobStore, **options: Any) -> ClaimedJob:
    """Claim the one job that is due."""
    [claim] = store.claim(**{"worker_id": "worker-1", "limit": 64, "lease": LEASE, **options})
    return claim


def running(store: JobStore, **fields: Any) -> ClaimedJob:
    """Store a job, in a queue of its own, and claim it."""
    job = enqueued(store, **{"queue": f"q{uuid7().hex}", **fields})
    [claim] = store.claim(worker_id="worker-1", limit=1, lease=LEASE, queues=only(job.queue))
    assert claim.id == job.id
    return claim


def only(*queues: str) -> QueueFilter:
    """Return the filter that serves these queues."""
    return QueueFilter(include=queues)


@contextmanager
def undone(store: JobStore) -> Iterator[None]:
    """Open a transaction and undo it at its end."""
    with suppress(_Undone), store.atomic():
        yield
        raise _Undone


class _Undone(Exception):
    pass


def read(store: JobStore, job_id: UUID) -> JobSnapshot:
    """Return a job that must be there."""
    job = store.get(job_id)
    assert job is not None
    return job


def state_of(store: JobStore, job_id: UUID) -> str:
    """Return the state of a job that must be there."""
    return read(store, job_id).state


def settled(store: JobStore, claim: ClaimedJob, outcome: Outcome, **fields: Any) -> SettleAnswer:
    """Settle one claim, with the callback that its job asks for, and return the answer."""
    given = {"started_at": store.now(), "follow_up": callback_of(store, claim, outcome), **fields}
    [answer] = store.settle([Settlement(claim=claim, outcome=outcome, **given)])
    return answer


def callback_of(store: JobStore, claim: ClaimedJob, outcome: Outcome) -> NewJob | None:
    """Return the callback that a driver would hand over with this settlement."""
    if outcome.state is State.PENDING:
        return None
    return follow_up_of(
        claim,
        context=claim.context,
        options=claim.options,
        result=result_of(outcome),
        new_id=uuid7(),
        now=store.now(),
    )


def success(value: Any = None) -> Outcome:
    """Return the end of a body that returned ``value``."""
    return Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS, result=value)


def failure(line: str = "ValueError: no", reason: str = FailureReason.EXHAUSTED) -> Outcome:
    """Return the end of a body whose failure is final."""
    report = ErrorReport(error_class="builtins.ValueError", error=line, traceback="Traceback", line=line)
    return Outcome(state=State.FAILED, attempt=AttemptOutcome.FAILED, failure_reason=reason, failures=1, report=report)


def retry(delay: timedelta = SECOND, line: str = "ValueError: no") -> Outcome:
    """Return the end of a body that failed and is to run again."""
    report = ErrorReport(error_class="builtins.ValueError", error=line, traceback="Traceback", line=line)
    return Outcome(state=State.PENDING, attempt=AttemptOutcome.FAILED, retry_in=delay, failures=1, report=report)


def snooze(delay: timedelta = SECOND) -> Outcome:
    """Return the end of a body that asked to run later, at no cost."""
    return Outcome(state=State.PENDING, attempt=AttemptOutcome.SNOOZED, retry_in=delay)


def canceled(did: AttemptOutcome = AttemptOutcome.CANCELED, value: Any = None) -> Outcome:
    """Return the end of a job that was canceled while its body did something."""
    return Outcome(state=State.CANCELED, attempt=did, result=value)


def lapse(clock: ManualClock, lease: timedelta = LEASE) -> None:
    """Let so much time pass that every lease of now may be swept at the first look."""
    clock.advance(2 * lease + TICK)


def swept(store: JobStore, clock: ManualClock) -> SweepAnswer:
    """Let every lease lapse and take them back."""
    lapse(clock)
    return store.sweep({}, lease=LEASE, decide_loss=loss)


def all_jobs(store: JobStore) -> list[JobSnapshot]:
    """Return every job, oldest first."""
    return store.list(JobFilter(), limit=1000)[::-1]


def callbacks(store: JobStore) -> list[dict[str, Any]]:
    """Return the keyword arguments of every callback that was enqueued, oldest first."""
    made = [job for job in all_jobs(store) if job.trigger == Trigger.ON_COMPLETE]
    told = [dict(store.args_of(job.id)["kwargs"]) for job in made]
    return [kwargs for kwargs in told if "job_id" in kwargs]


def completions(store: JobStore) -> list[dict[str, Any]]:
    """Return the keyword arguments of every callback of a batch, oldest first."""
    made = [job for job in all_jobs(store) if job.trigger == Trigger.ON_COMPLETE]
    told = [dict(store.args_of(job.id)["kwargs"]) for job in made]
    return [kwargs for kwargs in told if "batch_id" in kwargs]


def outcomes(store: JobStore, job_id: UUID) -> list[tuple[int, str]]:
    """Return number and outcome of every attempt of a job."""
    return [(attempt.number, attempt.outcome) for attempt in store.attempts_of(job_id)]


def last_attempt(store: JobStore, job_id: UUID) -> AttemptSnapshot:
    """Return the newest attempt of a job."""
    return store.attempts_of(job_id)[-1]
