"""The lines: the (limit key, queue) pairs with due jobs that wait for a slot, and what is known of each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_helisched.jobs.job import Hold, State
from django_helisched.models import Job, Limit, Queue
from django_helisched.stores.orm.rows import columns

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.orm.rows import Columns

STEPS = 300  # of one walk over the lines, so that a look stays bounded; the next one goes on from there
HOPS, HOP = 30, 25  # statements of a walk on MySQL, and rows that each of them reads
LAST = "\U0010ffff"  # behind the name of every queue

_WAITS_MYSQL = f"state = '{State.PENDING.value}' AND hold = '{Hold.LIMIT.value}'"
# The literals, and conditions that say nothing new, let the planner use the partial index.
LIMITED = "NOT (limit_key = '') AND completed_at IS NULL"
_WAITS = f"{_WAITS_MYSQL} AND {LIMITED}"
IS_OUT = f"state IN ('{State.PENDING.value}', '{State.IN_PROGRESS.value}') AND hold = '' AND {LIMITED}"
_BESIDE = "declared.capacity, declared.declared_at, paused.paused_at, paused.until"


@dataclass(frozen=True, slots=True)
class Declared:
    """How many may be out under a key, and since when that is said."""

    capacity: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The due jobs of one limit key in one queue: the function of the first, and what is known of the key."""

    key: str
    queue: str
    fn_path: str
    is_paused: bool
    declared: Declared | None  # as its row says, if it has one
    out: int


@dataclass(slots=True)
class Walk:
    """Where the next looks go on: after these keys."""

    after: str = ""  # at the lines
    forgot: str = ""  # at limits that nobody needs any more


def lines_after(connection: BaseDatabaseWrapper, walk: Walk, now: datetime) -> list[Line]:
    """Return lines from where the last look ended: few looks into the index, however long the lines are."""
    listed = _hops if connection.vendor == "mysql" else _recursion
    lines, is_cut = listed(connection, walk.after, now)
    walk.after = lines[-1].key if lines and is_cut else ""
    return lines


def _recursion(connection: BaseDatabaseWrapper, after: str, now: datetime) -> tuple[list[Line], bool]:
    table = columns(Job, ("limit_key", "queue"), connection)
    statement = f"""
        {_walk(table, connection)} SELECT line.k, line.q, (
            SELECT fn_path FROM {table.table} WHERE {waits(connection)}
            AND limit_key = line.k AND queue = line.q ORDER BY priority DESC, next_run_at, id LIMIT 1
        ), {_BESIDE}, (
            SELECT COUNT(*) FROM {table.table} WHERE {IS_OUT} AND limit_key = line.k
        ), line.n FROM line {_beside(connection, "line.k", "line.q")} WHERE line.k IS NOT NULL AND line.q <> ''
        ORDER BY line.n
        """
    # In the order of the walk, whatever a join makes of it: the next one goes on after the last line.
    with connection.cursor() as cursor:
        cursor.execute(statement, [after])
        rows = cursor.fetchall()
    return [_line(connection, row, now) for row in rows], any(row[-1] >= STEPS - 3 for row in rows)


def _hops(connection: BaseDatabaseWrapper, after: str, now: datetime) -> tuple[list[Line], bool]:
    """Read some rows after the last line that is known, again and again: a recursion of MySQL's reads whole lines."""
    table = columns(Job, ("limit_key", "queue", "fn_path"), connection)
    statement = f"""
        SELECT {table.listed}, {_BESIDE} FROM {table.table} {limit_index_hint(connection)}
        {_beside(connection, f"{table.table}.limit_key", f"{table.table}.queue")}
        WHERE {waits(connection)} AND (limit_key > %s OR (limit_key = %s AND queue > %s))
        ORDER BY limit_key, queue, priority DESC, next_run_at, id LIMIT {HOP}
        """
    found: dict[tuple[str, str], Sequence[Any]] = {}
    # Behind every queue of that key, and before the first one of the next.
    key, queue, rows = after, LAST, []
    with connection.cursor() as cursor:
        for _ in range(HOPS):
            cursor.execute(statement, [key, key, queue])
            rows = cursor.fetchall()
            for row in rows:
                found.setdefault(row[:2], row)
            if len(rows) < HOP:
                break
            key, queue = rows[-1][:2]
    out = out_under(connection.alias, {key for key, _ in found})
    return [_line(connection, (*row, out.get(row[0], 0)), now) for row in found.values()], len(rows) == HOP


def _beside(connection: BaseDatabaseWrapper, key: str, queue: str) -> str:
    name = connection.ops.quote_name
    return f"""
        LEFT JOIN {name(Limit._meta.db_table)} declared ON declared.{name("key")} = {key}
        LEFT JOIN {name(Queue._meta.db_table)} paused ON paused.name = {queue} AND paused.paused_at IS NOT NULL
        """


def _line(connection: BaseDatabaseWrapper, row: Sequence[Any], now: datetime) -> Line:
    said = columns(Limit, ("capacity", "declared_at"), connection).read(row[3:5])
    pause = columns(Queue, ("paused_at", "until"), connection).read(row[5:7])
    return Line(
        key=row[0],
        queue=row[1],
        fn_path=row[2],
        is_paused=pause["paused_at"] is not None and (pause["until"] is None or pause["until"] > now),
        declared=None if said["capacity"] is None else Declared(said["capacity"], said["declared_at"]),
        out=int(row[7]),
    )


def _walk(table: Columns, connection: BaseDatabaseWrapper) -> str:
    """Return the recursion that goes down the queues of a key, and then on to the next key."""
    key, queue = table.quoted
    waiting = f"FROM {table.table} WHERE {_WAITS}"
    # A recursion has the types of its first row.
    nothing = f"CAST('' AS {Job._meta.get_field('queue').db_type(connection)})"
    return f"""
        WITH RECURSIVE line (k, q, n) AS (
            SELECT (SELECT {key} {waiting} AND {key} > %s ORDER BY {key} LIMIT 1), {nothing}, 0
            UNION ALL
            SELECT
                CASE WHEN line.q IS NULL
                THEN (SELECT {key} {waiting} AND {table.table}.{key} > line.k ORDER BY {key} LIMIT 1)
                ELSE line.k END,
                CASE WHEN line.q IS NULL THEN {nothing}
                ELSE (SELECT {queue} {waiting} AND {table.table}.{key} = line.k AND {table.table}.{queue} > line.q
                      ORDER BY {queue} LIMIT 1) END,
                line.n + 1
            FROM line WHERE line.k IS NOT NULL AND line.n < {STEPS}
        )"""


def out_under(alias: str, keys: Collection[str]) -> dict[str, int]:
    """Return how many jobs are out under each key that has any."""
    if not keys:
        return {}
    connection = connections[alias]
    marks = ", ".join(["%s"] * len(keys))
    table = columns(Job, ("limit_key",), connection).table
    statement = (
        f"SELECT limit_key, COUNT(*) FROM {table} {limit_index_hint(connection)} WHERE {IS_OUT} "
        f"AND limit_key IN ({marks}) GROUP BY limit_key"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, list(keys))
        return {key: int(count) for key, count in cursor.fetchall()}


def waits(connection: BaseDatabaseWrapper) -> str:
    """Return the condition of a job that waits for a free slot, in words that the planner finds the index by."""
    return _WAITS_MYSQL if connection.vendor == "mysql" else _WAITS


def limit_index_hint(connection: BaseDatabaseWrapper) -> str:
    return "FORCE INDEX (helisched_job_limit)" if connection.vendor == "mysql" else ""
