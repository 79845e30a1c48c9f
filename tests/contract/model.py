"""Two stores side by side: every verb is asked of both, and both must say and hold the same."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import fields
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from hypothesis import HealthCheck, settings

from django_helisched.exceptions import HelischedError
from django_helisched.jobs.job import TERMINAL, ClaimedJob, JobSnapshot, State, Trigger
from django_helisched.jobs.outcome import AttemptOutcome
from django_helisched.stores.base import JobFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime

    from django_helisched.jobs.batch import BatchSnapshot
    from django_helisched.jobs.job import AttemptSnapshot

SOAK = int(os.environ.get("HELISCHED_SOAK", "0"))
SETTINGS = settings(
    max_examples=SOAK or 60,
    stateful_step_count=60,
    derandomize=not SOAK,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

NEXT = {
    State.PENDING: {State.IN_PROGRESS, State.CANCELED, State.FAILED},
    State.IN_PROGRESS: {State.SUCCESS, State.FAILED, State.CANCELED, State.PENDING},
    State.SUCCESS: set(),
    State.FAILED: set(),
    State.CANCELED: set(),
}
NEVER_CHANGES = (
    *("id", "fn_path", "kind", "at_most_once", "queue", "priority", "due_at", "timeout", "max_failures"),
    *("idempotency_key", "unique_until", "name", "space", "trigger", "has_args", "on_complete", "parent_id"),
    *("cron_id", "created_at", "app_version", "limit_key"),
)


def sequence() -> Callable[[], UUID]:
    """Return a factory of UUIDv7s that is the same for everybody who starts one."""
    numbers = count(1)
    return lambda: UUID(int=(0x019B_0000_0000 + next(numbers)) << 80 | 0x7 << 76 | 0x2 << 62)


class TwinIds:
    """Two equal sequences of ids, one for each of two stores that are to make the same jobs."""

    def __init__(self) -> None:
        self.trusted, self.other = sequence(), sequence()

    def __call__(self) -> UUID:
        """Return the next id, which must be the next one of both."""
        first, second = self.trusted(), self.other()
        assert first == second, "one store made more jobs than the other"
        return first


class Twins:
    """A store that is trusted and one that is compared with it."""

    def __init__(self, trusted: Any, other: Any) -> None:
        self.trusted, self.other = trusted, other

    def both(self, verb: str, *args: Any, **options: Any) -> Any:
        """Ask both stores, compare the answers, and return the one; or the exception that both raised."""
        answers = [_answer(store, verb, args, options) for store in (self.trusted, self.other)]
        assert comparable(answers[1]) == comparable(answers[0]), verb
        return answers[0]

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo in both stores whatever the block does."""
        with suppress(_Undone), self.trusted.atomic(), self.other.atomic():
            yield
            raise _Undone


class _Undone(Exception):
    pass


def _answer(store: Any, verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    try:
        return getattr(store, verb)(*args, **options)
    except HelischedError as error:
        return type(error)


def comparable(answer: Any) -> Any:
    """Return an answer in which only differences that matter are left: a list or a tuple does not."""
    if isinstance(answer, ClaimedJob):
        return {item.name: comparable(getattr(answer, item.name)) for item in fields(ClaimedJob)}
    if isinstance(answer, list | tuple):
        return [comparable(item) for item in answer]
    if isinstance(answer, dict):
        return {key: comparable(value) for key, value in answer.items()}
    return answer


class History:
    """What was seen after the last step, to compare the next one with: the invariants I-01 to I-21."""

    def __init__(self, twins: Twins) -> None:
        self._twins = twins
        self.jobs: dict[UUID, JobSnapshot] = {}
        self._attempts: dict[UUID, list[AttemptSnapshot]] = {}
        self._since: dict[UUID, int] = {}  # how many attempts a job had when it was last requeued
        self.batches: set[UUID] = set()
        self._complete: dict[UUID, BatchSnapshot] = {}
        self._told: list[dict[str, Any]] = []  # what callbacks of batches were called with
        self._ends: dict[UUID, list[str]] = {}  # how it ended each time, birth not counted
        self._asks: dict[UUID, bool] = {}  # whether a job has a callback
        self._calls: dict[UUID, tuple[UUID, str]] = {}  # a callback, the job that it is about, and what it tells
        self._pruned: set[UUID] = set()

    def look(self, *, requeued: UUID | None = None, everything: bool = False) -> None:
        """Compare all that both stores hold, and what changed with what may."""
        listed = self._twins.both("list", JobFilter(), limit=10_000)
        seen = {job.id: job for job in reversed(listed)}
        assert set(self.jobs) - self._pruned == set(self.jobs) & set(seen), "a job is gone, or back"
        for job in seen.values():
            before = self.jobs.get(job.id)
            if before is None:
                self._is_new(job)
            elif job != before:
                self._has_changed(before, job, may_restart=job.id == requeued)
            if before is None or everything or job.attempt_count != before.attempt_count:
                self._read_more(job)
            _holds_by_itself(job)
            self._counts(job)
        self.jobs = seen
        self._keys()
        self._callbacks()
        self._batches()

    def descendants_of(self, job_id: UUID) -> set[UUID]:
        """Return the family below a job."""
        found: set[UUID] = set()
        generation = {job_id}
        while generation:
            generation = {job.id for job in self.jobs.values() if job.parent_id in generation} - found - {job_id}
            found |= generation
        return found

    def prune(self, gone: Collection[UUID], *, keys_since: datetime) -> None:
        """Take note of jobs that were deleted, each of which must have been over and of no use to anybody."""
        for job_id in gone:
            job = self.jobs[job_id]
            assert job.completed_at is not None
            assert job.key_digest is None or job.completed_at < keys_since
            assert not [child for child in self.jobs.values() if _is_live(child) and child.parent_id == job_id]
            assert not [above for above in self._above(job) if _is_live(above)], "a cancel would end here"
            assert self._twins.both("get", job_id) is None
            assert not self._twins.both("attempts_of", job_id)
            assert not any(self._twins.both("args_of", job_id).values())
            assert job.batch_id is None or job.batch_id in self._complete
        self._pruned |= set(gone)

    def _above(self, job: JobSnapshot) -> list[JobSnapshot]:
        line: list[JobSnapshot] = []
        while job.parent_id in self.jobs and len(line) < len(self.jobs):
            job = self.jobs[job.parent_id]
            line.append(job)
        return line

    def _is_new(self, job: JobSnapshot) -> None:
        assert job.state in {State.PENDING, State.CANCELED}
        assert (job.fence, job.attempts, job.losses, job.attempt_count) == (0, 0, 0, 0)
        self._since[job.id] = 0
        self._ends[job.id] = []
        self._asks[job.id] = bool(job.on_complete)
        if job.trigger == Trigger.ON_COMPLETE:
            self._is_callback(job)

    def _has_changed(self, before: JobSnapshot, job: JobSnapshot, *, may_restart: bool) -> None:
        for name in NEVER_CHANGES:
            assert getattr(job, name) == getattr(before, name), name  # I-21
        assert job.fence >= before.fence
        if before.state in TERMINAL:
            assert may_restart, "terminal is final"  # I-04
            assert job.state == State.PENDING
            self._since[job.id] = job.attempt_count
        elif job.state != before.state:
            assert job.state in NEXT[State(before.state)]  # I-03
            if before.cancel_requested_at is not None:
                assert job.state == State.CANCELED  # I-19
        if job.state in TERMINAL and before.state not in TERMINAL:
            self._ends[job.id].append(job.state)

    def _read_more(self, job: JobSnapshot) -> None:
        attempts = list(self._twins.both("attempts_of", job.id))
        assert [attempt.number for attempt in attempts] == list(range(1, job.attempt_count + 1))  # I-06
        earlier = self._attempts.get(job.id, [])
        assert attempts[: len(earlier)] == earlier
        self._attempts[job.id] = attempts
        stored = self._twins.both("args_of", job.id)
        given = any(stored[name] for name in ("args", "kwargs", "options", "meta")) or stored["context"] is not None
        assert bool(given) == job.has_args  # I-14

    def _counts(self, job: JobSnapshot) -> None:
        made = [attempt.outcome for attempt in self._attempts[job.id][self._since[job.id] :]]
        if job.state != State.CANCELED:  # its attempt tells what the body did, and counts nothing
            failures = sum(outcome in {AttemptOutcome.FAILED, AttemptOutcome.TIMEOUT} for outcome in made)
            assert job.attempts == failures  # I-07
        assert job.losses == made.count(AttemptOutcome.LOST)
        assert job.attempts <= job.max_failures  # I-08
        if job.state in {State.PENDING, State.IN_PROGRESS}:
            assert job.attempts < job.max_failures

    def _batches(self) -> None:
        """Complete exactly when closed and without a live job, counted then, and for ever."""
        for batch_id in self.batches:
            batch = self._twins.both("get_batch", batch_id)
            live = [job for job in self.jobs.values() if job.batch_id == batch_id and job.state not in TERMINAL]
            if batch_id in self._complete:
                assert batch == self._complete[batch_id]
            elif batch.completed_at is not None:
                assert not live
                self._complete[batch_id] = batch
            else:
                assert live or batch.closed_at is None
        called = sorted(kwargs["batch_id"] for kwargs in self._told)
        assert called == sorted(str(batch.id) for batch in self._complete.values() if batch.on_complete)
        for kwargs in self._told:
            batch = self._complete[UUID(kwargs["batch_id"])]
            counts = {"success": batch.succeeded, "failed": batch.failed, "canceled": batch.canceled}
            assert (kwargs["counts"], kwargs["context"]) == (counts, batch.context)

    def _keys(self) -> None:
        taken = [job.key_digest for job in self.jobs.values() if job.key_digest is not None]
        assert len(taken) == len(set(taken))  # I-12

    def _is_callback(self, job: JobSnapshot) -> None:
        assert job.parent_id is None  # I-17
        kwargs = self._twins.trusted.args_of(job.id)["kwargs"]
        if "batch_id" in kwargs:
            self._told.append(dict(kwargs))
            return
        source = UUID(kwargs["job_id"])
        assert kwargs["context"] == self._twins.trusted.args_of(source)["context"]  # I-16
        self._calls[job.id] = source, kwargs["result"]["kind"]

    def _callbacks(self) -> None:
        told: dict[UUID, list[str]] = {}
        for _, (source, kind) in sorted(self._calls.items()):
            told.setdefault(source, []).append(kind)
        for job_id, ends in self._ends.items():
            expected = ends if self._asks[job_id] else []
            assert told.get(job_id, []) == expected  # I-15, I-16


def _is_live(job: JobSnapshot) -> bool:
    return job.state not in TERMINAL


def _holds_by_itself(job: JobSnapshot) -> None:
    running, over = job.state == State.IN_PROGRESS, job.state in TERMINAL
    assert (job.lease_holder is not None) == (job.lease_expires_at is not None) == running  # I-01
    assert (job.completed_at is not None) == over  # I-02
    assert bool(job.failure_reason) == (job.state == State.FAILED)
    assert bool(job.hold) == (job.held_at is not None)
    assert not (job.hold and job.state != State.PENDING)
    if job.cancel_requested_at is not None:
        assert job.state in {State.IN_PROGRESS, State.CANCELED}


def is_out(job: JobSnapshot) -> bool:
    """Tell whether a job takes a slot of its limit."""
    return job.state not in TERMINAL and not job.hold
