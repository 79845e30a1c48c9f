"""Let out the jobs that wait: for an earlier job of their cron, then for a free slot of their limit.

Nothing is counted, so that nothing can go wrong with a count: who is out is read
from the jobs. That is safe under the lock of the cron's row, which firing takes too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction
from django.db.models import F

from django_helisched.crons.words import Overlap
from django_helisched.jobs.job import Hold, State
from django_helisched.models import Cron, Job
from django_helisched.stores.orm.limit_lines import HOP, waits
from django_helisched.stores.orm.limiting import admit_limited, limit_hold, ripen
from django_helisched.stores.orm.operating import live_jobs_of
from django_helisched.stores.orm.rows import columns

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import QuerySet

    from django_helisched.stores.base import DeclaredLimits, QueueFilter
    from django_helisched.stores.orm.limit_lines import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The jobs that wait under one overlap key, and their cron."""

    key: str
    cron_id: UUID | None


def admit(alias: str, walk: Walk, queues: QueueFilter, limits: DeclaredLimits, now: datetime) -> int:
    """Let out whose turn it is; see JobStore.admit."""
    waiting = _waiting(connections[alias])
    admitted = 0
    if Hold.OVERLAP in waiting:
        moved = [_admit(alias, line, now) for line in _movable(alias, _lines(connections[alias]))]
        admitted += sum(moved)
        waiting |= {Hold.LIMIT, Hold.LATER} if moved else set()
    if Hold.LATER in waiting:
        ripen(alias, now)
    if waiting & {Hold.LIMIT, Hold.LATER}:
        admitted += admit_limited(alias, walk, queues, limits, now)
    return admitted


def _waiting(connection: BaseDatabaseWrapper) -> set[Hold]:
    """Return for what anybody waits: one statement, one look into an index for each."""
    table, is_mysql = connection.ops.quote_name(Job._meta.db_table), connection.vendor == "mysql"
    looks = {
        Hold.OVERLAP: ("helisched_job_overlap", f"hold = '{Hold.OVERLAP.value}'", "overlap_key"),
        Hold.LIMIT: ("helisched_job_limit", waits(connection), "limit_key"),
        Hold.LATER: ("helisched_job_hot", f"state = 'pending' AND hold = '{Hold.LATER.value}'", "queue"),
    }
    # In the index's order: PostgreSQL takes a row that is there for one that it will meet soon, and reads the table.
    asked = [
        f"(SELECT 1 FROM {table} {f'FORCE INDEX ({index})' if is_mysql else ''} WHERE {condition} "
        f"ORDER BY {column} LIMIT 1)"
        for index, condition, column in looks.values()
    ]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(asked)}")
        return {hold for hold, is_there in zip(looks, cursor.fetchone(), strict=True) if is_there}


def _lines(connection: BaseDatabaseWrapper) -> list[Line]:
    """Return every line: few looks into the index, however long the lines are."""
    listed = _hops if connection.vendor == "mysql" else _recursion
    reader = columns(Job, ("overlap_key", "cron_id"), connection)
    rows = [reader.read(row) for row in listed(connection)]
    return [Line(key=row["overlap_key"], cron_id=row["cron_id"]) for row in rows]


def _recursion(connection: BaseDatabaseWrapper) -> list[Any]:
    table = connection.ops.quote_name(Job._meta.db_table)
    # The literal lets the planner use the partial index.
    waiting = f"FROM {table} WHERE hold = '{Hold.OVERLAP.value}'"
    statement = f"""
        WITH RECURSIVE line (k) AS (
            SELECT (SELECT overlap_key {waiting} ORDER BY overlap_key LIMIT 1)
            UNION ALL
            SELECT (SELECT overlap_key {waiting} AND {table}.overlap_key > line.k ORDER BY overlap_key LIMIT 1)
            FROM line WHERE line.k IS NOT NULL
        )
        SELECT line.k, (SELECT cron_id {waiting} AND {table}.overlap_key = line.k ORDER BY {table}.id LIMIT 1)
        FROM line WHERE line.k IS NOT NULL
        """
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def _hops(connection: BaseDatabaseWrapper) -> list[Any]:
    """Read some rows after the last line that is known, again and again: a recursion of MySQL's reads whole lines."""
    table = connection.ops.quote_name(Job._meta.db_table)
    statement = f"""
        SELECT overlap_key, cron_id FROM {table} FORCE INDEX (helisched_job_overlap)
        WHERE hold = '{Hold.OVERLAP.value}' AND overlap_key > %s ORDER BY overlap_key, id LIMIT {HOP}
        """
    found: dict[str, Any] = {}
    after, is_last = "", False
    with connection.cursor() as cursor:
        while not is_last:
            cursor.execute(statement, [after])
            rows = cursor.fetchall()
            for row in rows:
                found.setdefault(row[0], row)
                after = row[0]
            is_last = len(rows) < HOP
    return list(found.values())


def _movable(alias: str, lines: list[Line]) -> list[Line]:
    """Leave out the lines that a running job holds up, without a lock."""
    wanted = [line.cron_id for line in lines if line.cron_id is not None]
    strict = Cron.objects.using(alias).filter(pk__in=wanted).exclude(overlap=Overlap.ALLOW.value)
    running = Job.objects.using(alias).filter(cron_id__in=wanted, state=State.IN_PROGRESS.value)
    held_up = set(strict.values_list("id", flat=True)) & set(running.values_list("cron_id", flat=True))
    return [line for line in lines if line.cron_id not in held_up]


def _admit(alias: str, line: Line, now: datetime) -> int:
    waiting = Job.objects.using(alias).filter(hold=Hold.OVERLAP.value, overlap_key=line.key)
    if line.cron_id is None:
        return _let_out(waiting, now)
    with transaction.atomic(using=alias):
        overlap = _locked_overlap(alias, line.cron_id)
        if overlap is None and Cron.objects.using(alias).filter(pk=line.cron_id).exists():
            return 0  # whoever holds it fires, or admits
        if overlap is None or overlap == Overlap.ALLOW:
            return _let_out(waiting, now)
        if live_jobs_of(alias, line.cron_id).exclude(hold=Hold.OVERLAP.value).exists():
            return 0
        return _let_out_first(alias, waiting, now)


def _locked_overlap(alias: str, cron_id: UUID) -> str | None:
    """Lock a cron and return how its jobs may overlap; None where it is gone, or others hold it."""
    row = Cron.objects.using(alias).filter(pk=cron_id)
    features = connections[alias].features
    if not features.has_select_for_update:
        row.update(version=F("version"))  # SQLite: a write takes the lock, a read cannot
    elif features.has_select_for_update_skip_locked:
        row = row.select_for_update(skip_locked=True)
    else:
        row = row.select_for_update()
    return row.values_list("overlap", flat=True).first()


def _let_out(rows: QuerySet[Job], now: datetime) -> int:
    """Let jobs go on, to their limits where they have one; return how many have none."""
    free = rows.filter(limit_key="").update(hold="", held_at=None)
    rows.exclude(limit_key="").update(**limit_hold(now))
    return free


def _let_out_first(alias: str, waiting: QuerySet[Job], now: datetime) -> int:
    first = waiting.order_by("id")[:1]
    row = waiting.filter(pk__in=list(first.values_list("id", flat=True)))
    if connections[alias].features.has_select_for_update_skip_locked:
        # Without waiting for whoever cancels it: the cron's lock is not to be held that long.
        row = waiting.filter(pk__in=list(row.select_for_update(skip_locked=True).values_list("id", flat=True)))
    return _let_out(row, now)
