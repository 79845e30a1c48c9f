"""Batches in memory: opened, closed, and complete once they are closed and none of their jobs is live."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from django_helisched.exceptions import BatchClosed
from django_helisched.jobs.batch import BatchSnapshot, batch_counts, completion_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from django_helisched.jobs.batch import NewBatch
    from django_helisched.jobs.job import NewJob
    from django_helisched.stores.memory.rows import Tables


def created(tables: Tables, new: NewBatch) -> BatchSnapshot:
    """Store a batch and return it."""
    tables.batches[new.id] = BatchSnapshot(**asdict(new))
    return tables.batches[new.id]


def counted(tables: Tables, batch: BatchSnapshot) -> BatchSnapshot:
    """Return a batch with the counts of its jobs, which do not change any more once it is complete."""
    if batch.completed_at is not None:
        return batch
    states = Counter(str(job.state) for job in tables.jobs.values() if job.batch_id == batch.id)
    counts: dict[str, Any] = batch_counts(states)
    return replace(batch, **counts)


def completed(tables: Tables, batch_id: UUID, *, new_id: Callable[[], UUID], now: datetime) -> NewJob | None:
    """Complete a batch if its last job has ended, and return its callback, if it has one."""
    batch = tables.batches.get(batch_id)
    if batch is None or batch.closed_at is None or batch.completed_at is not None:
        return None
    batch = counted(tables, batch)
    if batch.open:
        return None
    tables.batches[batch_id] = replace(batch, completed_at=now)
    return completion_of(batch, new_id=new_id(), now=now) if batch.on_complete else None


def check_open(tables: Tables, new: NewJob) -> None:
    """Raise BatchClosed where the batch of a new job takes none from here."""
    parent = None if new.parent_id is None else tables.jobs.get(new.parent_id)
    is_own = parent is not None and new.parent_fence is not None and parent.batch_id == new.batch_id
    if new.batch_id is None or is_own:
        return
    batch = tables.batches.get(new.batch_id)
    if batch is None or batch.closed_at is not None:
        state = "is not there" if batch is None else "is closed" if batch.completed_at is None else "is complete"
        raise BatchClosed(
            f"The batch {new.batch_id} {state}, so that only its own running jobs could add to it. "
            "Nothing was enqueued."
        )
