"""The heads on MySQL and MariaDB, which skip through an index only to values that they are told.

A comparison with an outer query's column makes them read every row before it, if it
is not for equality: the walk of the other databases would read all pending rows,
several times. So the heads that the last call found are asked about by their names,
and whatever lies between them is asked for by ranges that the statement spells
out. While the heads stay the same one statement is enough.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django_helisched.jobs.job import Hold
from django_helisched.models import Job, Queue
from django_helisched.models.job import QUEUE_LENGTH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    Place = tuple[str, int]
    Queues = dict[str, list[int]]  # and their priorities
    Condition = tuple[str, list[Any]]  # and its parameters

TOGETHER = 200  # queues of one statement: of a longer list the servers make no ranges
SPARE = 12  # heads without jobs that are asked about all the same, since most of them come back

# By alias and hold, what the last call found: a hint and nothing more, what is true is read each time.
_last: dict[tuple[str, Hold], list[Place]] = {}


def rows(connection: BaseDatabaseWrapper, now: Any, hold: Hold = Hold.NONE, until: Any = None) -> list[tuple[Any, ...]]:
    """Return queue, priority, when the oldest is due, and the queue's pause, of every head.

    ``now`` and ``until`` are parameters as the column next_run_at takes them; heads that are
    due after ``until`` are left out.
    """
    hint = (connection.alias, hold)
    places, pending = list(_last.get(hint, ())), _pending(connection, hold)
    found, strangers = _look(connection, pending, places, now, until)
    while strangers:
        for stranger in strangers:
            places += _walk(connection, pending, stranger, set(places), now)
        found, strangers = _look(connection, pending, places, now, until)
    empty = {place for place, row in found.items() if row[2] is None}
    _last[hint] = [place for place in places if place not in empty] + [p for p in places if p in empty][:SPARE]
    return [row for place, row in found.items() if place not in empty]


def _pending(connection: BaseDatabaseWrapper, hold: Hold) -> str:
    return (
        f"FROM {connection.ops.quote_name(Job._meta.db_table)} job FORCE INDEX (helisched_job_hot) "
        f"WHERE state = 'pending' AND hold = '{hold.value}' AND (expires_at IS NULL OR expires_at >= %s)"
    )


def _look(
    connection: BaseDatabaseWrapper, pending: str, places: Sequence[Place], now: Any, until: Any
) -> tuple[dict[Place, tuple[Any, ...]], list[Place]]:
    """Return the rows of known places, and for each part of the index the first place there that is not known."""
    found: dict[Place, tuple[Any, ...]] = {}
    known = set(places)
    for queues, (bounds, limits) in _parts(places):
        unknown, parameters = _unknown(queues)
        statement = (
            f"{_facts(connection, pending)} UNION ALL (SELECT job.queue, job.priority, NULL, NULL, NULL {pending} "
            f"{bounds} {unknown} ORDER BY job.queue, job.priority DESC LIMIT 1)"
        )
        listed = json.dumps([(queue, priority) for queue in queues for priority in queues[queue]])
        with connection.cursor() as cursor:
            cursor.execute(statement, [now, listed, until, until, now, *limits, *parameters])
            found |= {row[:2]: row for row in cursor.fetchall()}
    return {place: row for place, row in found.items() if place in known}, [p for p in found if p not in known]


def _facts(connection: BaseDatabaseWrapper, pending: str) -> str:
    """Return the statement about places that are known: compared for equality an index is used as it should be."""
    return f"""
        SELECT known.queue, known.priority, (
            SELECT job.next_run_at {pending} AND job.queue = known.queue AND job.priority = known.priority
            ORDER BY job.next_run_at LIMIT 1
        ) AS due, paused.paused_at, paused.until
        FROM JSON_TABLE(%s, '$[*]' COLUMNS (
            queue VARCHAR({QUEUE_LENGTH}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[0]',
            priority SMALLINT PATH '$[1]'
        )) known
        LEFT JOIN {connection.ops.quote_name(Queue._meta.db_table)} paused
        ON paused.name = known.queue AND paused.paused_at IS NOT NULL
        HAVING %s IS NULL OR due IS NULL OR due <= %s
        """


def _parts(places: Sequence[Place]) -> Iterator[tuple[Queues, Condition]]:
    """Part the index by queues: some of those that are known, and between which two names they and all others lie."""
    queues: Queues = {}
    for queue, priority in sorted(places):
        queues.setdefault(queue, []).append(priority)
    names = list(queues)
    starts = range(0, max(1, len(names)), TOGETHER)
    for start in starts:
        part = names[start : start + TOGETHER]
        bounds = [("AND job.queue > %s", names[start - 1])] if start else []
        bounds += [("AND job.queue <= %s", part[-1])] if start != starts[-1] else []
        yield {name: queues[name] for name in part}, (" ".join(sql for sql, _ in bounds), [name for _, name in bounds])


def _unknown(queues: Mapping[str, Sequence[int]]) -> Condition:
    """Return the condition of rows that belong to none of these queues, or to another priority there."""
    if not queues:
        return "", []
    conditions = [f"job.queue NOT IN ({_marks(queues)})"]
    parameters: list[Any] = [*queues]
    alike: dict[tuple[int, ...], list[str]] = {}
    for queue, priorities in queues.items():
        alike.setdefault(tuple(priorities), []).append(queue)
    for priorities, names in alike.items():
        conditions.append(f"(job.queue IN ({_marks(names)}) AND job.priority NOT IN ({_marks(priorities)}))")
        parameters += [*names, *priorities]
    return f"AND ({' OR '.join(conditions)})", parameters


def _walk(
    connection: BaseDatabaseWrapper, pending: str, place: Place, known: Collection[Place], now: Any
) -> list[Place]:
    """Return this place and those that follow it in the index, up to one that is known."""
    statement = (
        f"SELECT * FROM ((SELECT 1 AS step, job.queue, job.priority {pending} AND job.queue = %s AND job.priority < %s "
        "ORDER BY job.priority DESC LIMIT 1) UNION ALL "
        f"(SELECT 2, job.queue, job.priority {pending} AND job.queue > %s "
        "ORDER BY job.queue, job.priority DESC LIMIT 1)) following"
    )
    passed = [place]
    with connection.cursor() as cursor:
        while True:
            queue, priority = passed[-1]
            cursor.execute(statement, [now, queue, priority, now, queue])
            following = min(cursor.fetchall(), default=None)
            if following is None or following[1:] in known:
                return passed
            passed.append(following[1:])


def _marks(values: Collection[Any]) -> str:
    return ", ".join(["%s"] * len(values))
