"""Batches: opened, closed, and complete once they are closed and none of their jobs is live.

Nothing is counted while jobs end. Whoever ends a job of a batch locks the
batch's row, as the last thing in its transaction, and reads whether others are
left. Of two that end the last two jobs at once, one waits for the other's
commit and sees it.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models import Count, F

from django_helisched.jobs.batch import BatchSnapshot, batch_counts, completion_of
from django_helisched.jobs.job import State
from django_helisched.models import Batch, Job
from django_helisched.stores.orm.connection import operator_transaction
from django_helisched.stores.orm.inserting import store_all
from django_helisched.stores.orm.new_rows import new_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from uuid import UUID

    from django_helisched.jobs.batch import NewBatch

_LIVE = [State.PENDING.value, State.IN_PROGRESS.value]
_COLUMNS = ("id", "created_at", "name", "space", "on_complete", "context", "options", "closed_at", "completed_at")
_COUNTS = ("succeeded", "failed", "canceled")


class _Ended(threading.local):
    """The batches of which the verb that runs in this thread has ended a job; None outside a verb."""

    batches: set[UUID] | None = None


_ended = _Ended()


def note_end(batch_id: UUID | None) -> None:
    """Note that a job of a batch has ended; what follows happens when its verb has locked all its jobs."""
    if batch_id is not None and _ended.batches is not None:
        _ended.batches.add(batch_id)


@contextmanager
def completing_batches(alias: str, *, new_id: Callable[[], UUID], now: datetime) -> Iterator[None]:
    """Complete at the block's end the batches whose last job it has ended; inside the caller's transaction."""
    if _ended.batches is not None:
        yield  # the verb around this one still locks jobs, and a batch comes after all of them
        return
    found = _ended.batches = set()
    try:
        yield
    finally:
        _ended.batches = None
    for batch_id in sorted(found):
        row = _locked(alias, batch_id)
        if row is not None and row.closed_at is not None:
            _complete(alias, row, new_id=new_id, now=now)


def create(alias: str, new: NewBatch) -> BatchSnapshot:
    """Store a batch; see JobStore.create_batch."""
    given = {name: getattr(new, name) for name in ("id", "created_at", "name", "space", "on_complete", "context")}
    given["options"] = dict(new.options)
    Batch.objects.using(alias).create(**given)
    return BatchSnapshot(**given)


def close(alias: str, batch_id: UUID, *, new_id: Callable[[], UUID], now: datetime) -> bool:
    """Close a batch; see JobStore.close_batch."""
    with operator_transaction(alias):
        row = _locked(alias, batch_id)
        if row is None or row.closed_at is not None:
            return False
        Batch.objects.using(alias).filter(pk=batch_id).update(closed_at=now)
        _complete(alias, replace(row, closed_at=now), new_id=new_id, now=now)
        return True


def get(alias: str, batch_id: UUID) -> BatchSnapshot | None:
    """Return a batch; see JobStore.get_batch."""
    row = Batch.objects.using(alias).filter(pk=batch_id).values(*_COLUMNS, *_COUNTS).first()
    if row is None:
        return None
    found = BatchSnapshot(**row)
    return found if found.completed_at is not None else replace(found, **_counts(alias, batch_id))


def _locked(alias: str, batch_id: UUID) -> BatchSnapshot | None:
    features = connections[alias].features
    rows = Batch.objects.using(alias).filter(pk=batch_id, completed_at=None)
    if features.has_select_for_update:
        rows = rows.select_for_update(no_key=features.has_select_for_no_key_update)
    else:
        rows.update(closed_at=F("closed_at"))
    row = rows.values(*_COLUMNS).first()
    return None if row is None else BatchSnapshot(**row)


def _complete(alias: str, batch: BatchSnapshot, *, new_id: Callable[[], UUID], now: datetime) -> None:
    """Complete a closed batch, whose row is locked, unless a job of it is live."""
    if Job.objects.using(alias).filter(batch_id=batch.id, state__in=_LIVE).exists():
        return
    counts = {name: count for name, count in _counts(alias, batch.id).items() if name in _COUNTS}
    Batch.objects.using(alias).filter(pk=batch.id).update(completed_at=now, **counts)
    if batch.on_complete:
        job = completion_of(replace(batch, **counts), new_id=new_id(), now=now)
        if job is not None:
            store_all(connections[alias], [(job, new_row(job))])


def _counts(alias: str, batch_id: UUID) -> dict[str, Any]:
    jobs = Job.objects.using(alias).filter(batch_id=batch_id).order_by()
    return batch_counts(dict(jobs.values_list("state").annotate(count=Count("id"))))
