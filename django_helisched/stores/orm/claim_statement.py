"""What the claim statements of the dialects have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django_helisched.models import Job
from django_helisched.stores.orm.rows import CLAIM, Columns, columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.orm.heads import Head

_READ = tuple(name for name in CLAIM if name not in {"lease_holder", "lease_expires_at"})
# The index's own order. On MySQL a sort would make SKIP LOCKED lock every candidate, not only the rows it returns.
OLDEST_FIRST = "ORDER BY next_run_at, id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Who takes, when, and until when the lease runs."""

    worker_id: str
    now: datetime
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of the rows that one statement takes: how its WHERE goes on, and the parameters."""

    where: str
    parameters: Sequence[Any]
    is_walk: bool  # along the hot index


def claim_columns(connection: BaseDatabaseWrapper) -> Columns:
    """Return the columns of a claim that are read; who holds it and until when the claim itself says."""
    return columns(Job, _READ, connection)


# An at-most-once job gets its ``started_at`` only when its body begins: a sweep can tell a claim that never ran.
CHANGES = (
    "state = 'in_progress', fence = fence + 1, lease_holder = %s, lease_expires_at = %s, "
    "started_at = CASE WHEN at_most_once THEN NULL ELSE %s END"
)


def changed(connection: BaseDatabaseWrapper, take: Take) -> list[Any]:
    """Return the parameters of CHANGES, the SET clause of a claim."""
    times = columns(Job, ("lease_holder", "lease_expires_at", "started_at"), connection)
    return times.adapt([take.worker_id, take.lease_expires_at, take.now])


def startable(place: str) -> str:
    """Return the WHERE of the rows of a ``place`` that may be taken; its parameters follow those of the place."""
    # Literals, so that the planner may use the partial index.
    return (
        f"state = 'pending' AND hold = '' AND {place} AND next_run_at <= %s "
        "AND (expires_at IS NULL OR expires_at >= %s)"
    )


def as_of(connection: BaseDatabaseWrapper, take: Take) -> list[Any]:
    """Return the parameters of ``startable``."""
    return columns(Job, ("next_run_at", "expires_at"), connection).adapt([take.now, take.now])


def first_of(connection: BaseDatabaseWrapper, take: Take, head: Head, count: int) -> Part:
    """Return the part of so many due rows of one head, oldest first."""
    place = "queue = %s AND priority = %s"
    values: list[Any] = [head.queue, head.priority]
    if connection.features.has_select_for_update_skip_locked:
        # The listing of the heads has read past what claims have left behind, which nobody can clear away
        # while an old transaction is open; that need not be done twice.
        place += " AND next_run_at >= %s"
        values += columns(Job, ("next_run_at",), connection).adapt([head.due_at])
    where = f"{startable(place)} {OLDEST_FIRST} LIMIT %s"
    return Part(where=where, parameters=[*values, *as_of(connection, take), count], is_walk=True)


def named(connection: BaseDatabaseWrapper, take: Take, ids: Sequence[UUID]) -> Part:
    """Return the part of these rows, as far as they may be taken still."""
    adapt = columns(Job, ("id",), connection).writer("id")
    values = [adapt(job_id) for job_id in ids]
    where = startable(f"id IN ({', '.join(['%s'] * len(ids))})")
    return Part(where=where, parameters=[*values, *as_of(connection, take)], is_walk=False)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return claimed rows oldest first: RETURNING promises no order."""
    return sorted(rows, key=lambda row: (row["next_run_at"], row["id"].int))
