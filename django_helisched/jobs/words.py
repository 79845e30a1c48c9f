"""The words of a job. Apart from its records, which a process that only has the models does without."""

from __future__ import annotations

from enum import StrEnum

DEFAULT_QUEUE = "default"
PRIORITY_MIN, PRIORITY_MAX = -100, 100  # the range of Django's own Tasks


class State(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELED = "canceled"


TERMINAL = frozenset({State.SUCCESS, State.FAILED, State.CANCELED})


class Kind(StrEnum):
    MUTATION = "mutation"
    ACTION = "action"


class FailureReason(StrEnum):
    EXHAUSTED = "exhausted"
    NON_RETRYABLE = "non_retryable"
    LOST = "lost"
    TIMEOUT = "timeout"
    EXPIRED = "expired"
    UNKNOWN_FUNCTION = "unknown_function"


class Hold(StrEnum):
    """Why a pending job is left out of every claim."""

    NONE = ""
    UNKNOWN_FUNCTION = "unknown_function"
    LIMIT = "limit"  # due, and waits for a free slot of its limit
    LATER = "later"  # has a limit, and is not due yet
    OVERLAP = "overlap"  # an earlier job of its cron goes first


class Trigger(StrEnum):
    """What made the job."""

    API = "api"
    CRON = "cron"
    BACKFILL = "backfill"
    ON_COMPLETE = "on_complete"
    MANUAL = "manual"
    TASK = "task"


class UniqueUntil(StrEnum):
    """How long an idempotency key is taken."""

    PRUNED = "pruned"
    TERMINAL = "terminal"


class AttemptOutcome(StrEnum):
    """How one attempt ended."""

    SUCCESS = "success"
    FAILED = "failed"
    SNOOZED = "snoozed"
    LOST = "lost"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
