"""The records of a job that stores and driver exchange, and its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django_helisched.jobs.words import (
    DEFAULT_QUEUE,
    PRIORITY_MAX,
    PRIORITY_MIN,
    TERMINAL,
    FailureReason,
    Hold,
    Kind,
    State,
    Trigger,
    UniqueUntil,
)

__all__ = [
    "DEFAULT_QUEUE",
    "PRIORITY_MAX",
    "PRIORITY_MIN",
    "TERMINAL",
    "AttemptSnapshot",
    "ClaimedJob",
    "Enqueued",
    "FailureReason",
    "Hold",
    "JobSnapshot",
    "Kind",
    "NewJob",
    "Particulars",
    "State",
    "Trigger",
    "UniqueUntil",
]


@dataclass(frozen=True, kw_only=True)  # without slots a copy is one dict
class NewJob:
    """A job about to be stored. Instants are aware UTC datetimes cut to milliseconds.

    ``parent_fence`` is the fence of the running parent that enqueues, or None
    where the parent was named by hand. Of the jobs with one ``overlap_key`` one is
    out at a time: such a job is stored with the hold ``overlap``, until ``admit``.
    One with a ``limit_key`` waits for its limit after that, with the hold ``limit``,
    or ``later`` while it is not due.
    """

    id: UUID
    fn_path: str
    created_at: datetime
    due_at: datetime
    next_run_at: datetime
    kind: str = Kind.MUTATION
    at_most_once: bool = False
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_failures: int = 3
    expires_at: datetime | None = None
    timeout: timedelta | None = None
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    context: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    unique_until: str = UniqueUntil.PRUNED
    limit_key: str = ""
    overlap_key: str = ""
    hold: str = Hold.NONE
    app_version: str = ""
    name: str = ""
    space: str = ""
    trigger: str = Trigger.API
    on_complete: str = ""
    parent_id: UUID | None = None
    parent_fence: int | None = None
    cron_id: UUID | None = None
    batch_id: UUID | None = None

    @property
    def first_hold(self) -> str:
        """Return the hold that the job is stored with."""
        if self.overlap_key:
            return Hold.OVERLAP
        if self.hold or not self.limit_key:
            return self.hold
        return Hold.LIMIT if self.next_run_at <= self.created_at else Hold.LATER

    @property
    def has_args(self) -> bool:
        """Tell whether anything has to be stored beside the job's own row."""
        return bool(self.args or self.kwargs or self.options or self.meta) or self.context is not None


class Particulars(NamedTuple):
    """What one of many jobs that are alike has for itself."""

    id: UUID
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)  # without slots a copy is one dict
class JobSnapshot:
    """One job's row as it was when it was read, without its arguments."""

    id: UUID
    fn_path: str
    kind: str
    at_most_once: bool
    state: str
    failure_reason: str
    hold: str
    held_at: datetime | None
    queue: str
    priority: int
    due_at: datetime
    next_run_at: datetime
    expires_at: datetime | None
    timeout: timedelta | None
    attempts: int
    max_failures: int
    losses: int
    attempt_count: int
    lease_holder: str | None
    lease_expires_at: datetime | None
    fence: int
    cancel_requested_at: datetime | None
    key_digest: str | None
    idempotency_key: str
    unique_until: str
    limit_key: str
    overlap_key: str
    app_version: str
    name: str
    space: str
    trigger: str
    has_args: bool
    on_complete: str
    parent_id: UUID | None
    cron_id: UUID | None
    batch_id: UUID | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    last_error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedJob:
    """A job that one worker holds, with what it needs to run and to settle it.

    ``fence`` names this claim: every write that ends it carries the number, and
    a later claim has a greater one.
    """

    id: UUID
    fence: int
    fn_path: str
    kind: str
    at_most_once: bool
    queue: str
    priority: int
    due_at: datetime
    next_run_at: datetime
    timeout: timedelta | None
    attempts: int
    max_failures: int
    losses: int
    attempt_count: int
    lease_holder: str
    lease_expires_at: datetime
    name: str
    space: str
    trigger: str
    on_complete: str
    parent_id: UUID | None
    cron_id: UUID | None
    batch_id: UUID | None
    has_args: bool
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    context: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attempt(self) -> int:
        """Return the number of the attempt that this claim is: 1, 2, ..., never restarting."""
        return self.attempt_count + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSnapshot:
    """How one attempt ended."""

    job_id: UUID
    number: int
    outcome: str
    started_at: datetime | None
    ended_at: datetime
    worker_id: str
    error_class: str
    error: str
    traceback: str
    result: Any
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """What an enqueue did: the job that now stands for the call.

    ``created`` is False where the idempotency key was taken: ``job`` is then
    the older row, unchanged. A born-canceled job counts as created.
    """

    job: JobSnapshot
    created: bool
