"""A set of jobs with one job that runs when all of them have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django_helisched.jobs.follow_up import OPTION, callback
from django_helisched.jobs.job import NewJob, State


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBatch:
    """A batch about to be stored, open for jobs."""

    id: UUID
    created_at: datetime
    name: str = ""
    space: str = ""
    on_complete: str = ""
    context: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSnapshot:
    """One batch as it was when it was read.

    ``open`` counts its jobs that have not ended; the other counts are of those
    that have, and stay what they were when the batch was complete.
    """

    id: UUID
    created_at: datetime
    name: str
    space: str
    on_complete: str
    context: Any
    options: Mapping[str, Any]
    closed_at: datetime | None = None
    completed_at: datetime | None = None
    open: int = 0
    succeeded: int = 0
    failed: int = 0
    canceled: int = 0


def batch_counts(states: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of a batch for how many of its jobs are in each state."""
    return {
        "open": states.get(State.PENDING, 0) + states.get(State.IN_PROGRESS, 0),
        "succeeded": states.get(State.SUCCESS, 0),
        "failed": states.get(State.FAILED, 0),
        "canceled": states.get(State.CANCELED, 0),
    }


def completion_of(batch: BatchSnapshot, *, new_id: UUID, now: datetime) -> NewJob | None:
    """Return the on_complete job of a batch whose last job has ended, or None where it has none."""
    if not batch.on_complete:
        return None
    counts = {"success": batch.succeeded, "failed": batch.failed, "canceled": batch.canceled}
    kwargs = {"batch_id": str(batch.id), "context": batch.context, "counts": counts}
    return callback(batch.on_complete, batch.options.get(OPTION, {}), kwargs, space=batch.space, new_id=new_id, now=now)
