"""The heads: the (queue, priority) pairs with pending rows, and when the oldest of each is due.

They are listed by skipping through the hot index: that costs the more the more heads
there are, and nothing for their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_helisched.jobs.job import Hold
from django_helisched.models import Job, Queue
from django_helisched.stores.orm import heads_mysql, heads_walk
from django_helisched.stores.orm.rows import columns

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.base import QueueFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """One (queue, priority) pair with pending rows, and when its oldest is due."""

    queue: str
    priority: int
    due_at: datetime


def heads(
    connection: BaseDatabaseWrapper, queues: QueueFilter, now: datetime, holds: tuple[Hold, ...] = (Hold.NONE,)
) -> list[Head]:
    """Return the heads that a claim may visit: of served queues that are not paused.

    A queue paused until an instant is due no earlier than that. Other ``holds`` give
    the heads of rows that no claim visits yet.
    """
    found = (_head(row, pause, now) for row, pause in _rows(connection, now, holds))
    return [head for head in found if head is not None and queues.admits(head.queue)]


def due_heads(connection: BaseDatabaseWrapper, queues: QueueFilter, now: datetime) -> list[Head]:
    """Return the heads that a claim may visit at ``now``."""
    found = (_head(row, pause, now) for row, pause in _rows(connection, now, until=now))
    return [head for head in found if head is not None and head.due_at <= now and queues.admits(head.queue)]


def every_head(connection: BaseDatabaseWrapper, now: datetime) -> list[Head]:
    """Return the heads of every queue, and when their oldest is due, paused or not."""
    rows = [row for row, _ in _rows(connection, now) if row["next_run_at"] is not None]
    return [Head(queue=row["queue"], priority=row["priority"], due_at=row["next_run_at"]) for row in rows]


def paused_queues(connection: BaseDatabaseWrapper, now: datetime) -> set[str]:
    """Return the queues that claims stay away from."""
    paused = Queue.objects.using(connection.alias).filter(paused_at__isnull=False).values_list("name", "until")
    return {name for name, until in paused if until is None or until > now}


def _rows(
    connection: BaseDatabaseWrapper,
    now: datetime,
    holds: tuple[Hold, ...] = (Hold.NONE,),
    until: datetime | None = None,
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    job = columns(Job, ("queue", "priority", "next_run_at"), connection)
    pause = columns(Queue, ("paused_at", "until"), connection)
    write = job.writer("next_run_at")
    asked, latest = write(now), None if until is None else write(until)
    if connection.vendor == "mysql":
        found = [row for hold in holds for row in heads_mysql.rows(connection, asked, hold, latest)]
    else:
        found = _walked(connection, asked, holds, latest)
    return [(job.read(row[:3]), pause.read(row[3:])) for row in found]


def _walked(connection: BaseDatabaseWrapper, now: Any, holds: tuple[Hold, ...], until: Any) -> list[Any]:
    statement = _statement(connection.alias, connection.vendor, holds, is_bounded=until is not None)
    of_one_hold = [now] * heads_walk.TIMES if until is None else [*[now] * heads_walk.TIMES, until]
    with connection.cursor() as cursor:
        cursor.execute(statement, of_one_hold * len(holds))
        return list(cursor.fetchall())


def _head(row: dict[str, Any], pause: dict[str, Any], now: datetime) -> Head | None:
    due_at, until = row["next_run_at"], pause["until"]
    if due_at is None:
        return None
    if pause["paused_at"] is not None:
        if until is None:
            return None
        due_at = due_at if until <= now else max(due_at, until)
    return Head(queue=row["queue"], priority=row["priority"], due_at=due_at)


@lru_cache(maxsize=16)
def _statement(alias: str, _vendor: str, holds: tuple[Hold, ...], *, is_bounded: bool) -> str:
    """Return the walk for each hold."""
    bound = " WHERE due <= %s" if is_bounded else ""
    walks = [heads_walk.statement(connections[alias], hold) for hold in holds]
    return " UNION ALL ".join(f"SELECT * FROM ({walk}) one_hold{bound}" for walk in walks)
