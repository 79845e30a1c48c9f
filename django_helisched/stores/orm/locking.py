"""Lock Job rows by id, the way each database allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connections
from django.db.models import F

from django_helisched.models import Job
from django_helisched.stores.orm.rows import job_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from django_helisched.jobs.job import JobSnapshot

CHUNK = 500  # ids of one statement: below the 999 parameters of the smallest SQLite


def locked_jobs(alias: str, ids: Iterable[UUID], *, skip_locked: bool = False) -> list[JobSnapshot]:
    """Return the rows of ``ids`` by id, locked until the open transaction ends.

    With ``skip_locked`` the rows that others hold are left out.
    """
    return [job for chunk in in_chunks(sorted(ids)) for job in _locked(alias, chunk, skip_locked=skip_locked)]


def in_chunks(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    """Yield ``ids`` in parts that one statement can name: SQLite's parameters are counted."""
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]


def _locked(alias: str, wanted: Sequence[UUID], *, skip_locked: bool) -> list[JobSnapshot]:
    features = connections[alias].features
    rows = Job.objects.using(alias).filter(pk__in=wanted).order_by("pk")
    if features.has_select_for_update:
        rows = rows.select_for_update(
            skip_locked=skip_locked and features.has_select_for_update_skip_locked,
            # Children that name the row need not wait for it.
            no_key=features.has_select_for_no_key_update,
        )
    else:
        # SQLite: a write first, since a read lock that has to grow fails at once.
        Job.objects.using(alias).filter(pk__in=wanted).update(fence=F("fence"))
    return [job_snapshot(row) for row in rows]
