"""Which batches take a new job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connections
from django.db.models import F

from django_helisched.exceptions import BatchClosed
from django_helisched.models import Batch, Job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django_helisched.jobs.job import NewJob


def keep_open(alias: str, jobs: Sequence[NewJob]) -> None:
    """Raise BatchClosed unless every batch of these jobs takes them, until the open transaction ends.

    A running job of the batch keeps it from being complete by itself.
    """
    own = _own_batches(alias, jobs)
    strangers = {job.batch_id for job in jobs if job.batch_id is not None and job.batch_id not in own}
    if not strangers:
        return
    for batch_id in strangers - _shared(alias, strangers):
        state = Batch.objects.using(alias).filter(pk=batch_id).values_list("completed_at", flat=True).first()
        is_there = Batch.objects.using(alias).filter(pk=batch_id).exists()
        reason = "is not there" if not is_there else "is closed" if state is None else "is complete"
        raise BatchClosed(
            f"The batch {batch_id} {reason}, so that only its own running jobs could add to it. Nothing was enqueued."
        )


def _own_batches(alias: str, jobs: Sequence[NewJob]) -> set[UUID | None]:
    """Return the batches of the running jobs that enqueue."""
    parents = {job.parent_id for job in jobs if job.parent_fence is not None and job.parent_id is not None}
    if not parents:
        return set()
    return set(Job.objects.using(alias).filter(pk__in=parents).values_list("batch_id", flat=True))


def _shared(alias: str, wanted: set[UUID]) -> set[UUID]:
    """Return those of the batches that are not closed, and keep them so until the open transaction ends."""
    connection = connections[alias]
    rows = Batch.objects.using(alias).filter(pk__in=wanted, closed_at=None)
    if not connection.features.has_select_for_update:
        rows.update(closed_at=F("closed_at"))  # SQLite: a write takes the lock, a read cannot
        return set(rows.values_list("id", flat=True))
    statement, parameters = rows.order_by("id").values_list("id", flat=True).query.sql_with_params()
    share = "FOR SHARE" if connection.vendor == "postgresql" else "LOCK IN SHARE MODE"
    return {row.pk for row in Batch.objects.using(alias).raw(f"{statement} {share}", parameters)}
