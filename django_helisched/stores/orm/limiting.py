"""Let out the jobs that wait for a free slot of their limit.

Nothing is counted: who is out is read from an index, under the lock of the
limit's row, which everybody takes who lets a job out. A job leaves its slot by
whatever ends or gives back its attempt, since that changes its own row.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction
from django.db.models import Case, DateTimeField, Q, Value, When

from django_helisched.jobs.job import Hold, State
from django_helisched.models import Job, Limit
from django_helisched.models.fields import KeyField
from django_helisched.stores.base import ADMIT_LIMIT, EVERY_QUEUE, NO_LIMITS
from django_helisched.stores.orm.connection import once_more
from django_helisched.stores.orm.heads import heads, paused_queues
from django_helisched.stores.orm.limit_lines import IS_OUT, LIMITED, Declared, limit_index_hint, lines_after, waits
from django_helisched.stores.orm.locking import in_chunks
from django_helisched.stores.orm.rows import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import QuerySet

    from django_helisched.stores.base import DeclaredLimits, QueueFilter
    from django_helisched.stores.orm.limit_lines import Line, Walk

SPARE = 8  # candidates of a line beyond the free slots: somebody may hold the first ones
RIPE = 500  # jobs of one (queue, priority) that become due in one look
FORGOTTEN = 500  # rows of limits that one call looks at
WITHDRAWN = 1000  # jobs that one look at what was let out may see

_OUT = Q(~Q(limit_key=""), completed_at__isnull=True, hold=Hold.NONE.value)


def limit_hold(now: datetime) -> dict[str, Any]:
    """Return the columns of a pending job that nothing but its limit holds, for an UPDATE."""
    hold = Case(
        When(limit_key="", then=Value("")),
        When(next_run_at__lte=now, then=Value(Hold.LIMIT.value)),
        default=Value(Hold.LATER.value),
        output_field=KeyField(),
    )
    held_at = Case(When(limit_key="", then=Value(None)), default=Value(now), output_field=DateTimeField())
    return {"hold": hold, "held_at": held_at}


def admit_limited(alias: str, walk: Walk, queues: QueueFilter, limits: DeclaredLimits, now: datetime) -> int:
    """Let out what free slots are there for; see JobStore.admit."""
    lines: dict[str, list[Line]] = {}
    for line in lines_after(connections[alias], walk, now):
        if not line.is_paused and queues.admits(line.queue):
            lines.setdefault(line.key, []).append(line)
    wanted = {key: _wanted(line[0], limits) for key, line in lines.items()}
    found = {key: line[0].declared or wanted[key] for key, line in lines.items()}
    _make(alias, {key: found[key] for key, line in lines.items() if line[0].declared is None})
    settled = {key: _newest(found[key], wanted[key]) for key in lines}
    open_keys = [key for key, said in settled.items() if lines[key][0].out < said.capacity or said != found[key]]
    return once_more(alias, partial(_let_out, alias, open_keys, lines, wanted, now)) if open_keys else 0


def _let_out(
    alias: str,
    keys: Sequence[str],
    lines: Mapping[str, Sequence[Line]],
    wanted: Mapping[str, Declared],
    now: datetime,
) -> int:
    with transaction.atomic(using=alias):
        found = locked_limits(alias, keys)
        settled = {key: _newest(said, wanted[key]) for key, said in found.items()}
        for key, said in settled.items():
            if said != found[key]:
                Limit.objects.using(alias).filter(pk=key).update(capacity=said.capacity, declared_at=said.at)
        # What was read before the lock says how many to look at; what is read now, how many to let out.
        room = {key: said.capacity - lines[key][0].out for key, said in settled.items()}
        room = {key: count for key, count in room.items() if count > 0}
        share = max(1, ADMIT_LIMIT // max(1, len(room)))
        ids: list[UUID] = []
        candidates = _candidates(alias, {key: min(count, share) for key, count in room.items()}, lines, now)
        for key, (out, waiting) in candidates.items():
            ids += waiting[: max(0, min(settled[key].capacity - out, share))]
        return sum(
            Job.objects.using(alias).filter(pk__in=chunk).update(hold="", held_at=None) for chunk in in_chunks(ids)
        )


def _wanted(line: Line, limits: DeclaredLimits) -> Declared:
    """Return what this process says about a key; nothing is as good as 1, said by the oldest of all."""
    capacity = limits.capacity_of(line.fn_path)
    return Declared(1, NO_LIMITS.since) if capacity is None else Declared(capacity, limits.since)


def _newest(found: Declared, wanted: Declared) -> Declared:
    return wanted if found.capacity != wanted.capacity and found.at < wanted.at else found


def _make(alias: str, missing: Mapping[str, Declared]) -> None:
    """Make the rows of keys that have none; somebody else may do so at the same time."""
    rows = [Limit(key=key, capacity=said.capacity, declared_at=said.at) for key, said in sorted(missing.items())]
    if rows:
        Limit.objects.using(alias).bulk_create(rows, ignore_conflicts=True)


def locked_limits(alias: str, keys: Sequence[str]) -> dict[str, Declared]:
    """Lock the rows of these keys that nobody else holds, and return what they say."""
    connection = connections[alias]
    table = columns(Limit, ("key", "capacity", "declared_at"), connection)
    key, features = table.quoted[0], connection.features
    named = f"{key} IN ({', '.join(['%s'] * len(keys))})"
    if features.has_select_for_update:
        skip = " SKIP LOCKED" if features.has_select_for_update_skip_locked else ""
        statement = f"SELECT {table.listed} FROM {table.table} WHERE {named} ORDER BY {key} FOR UPDATE{skip}"
    else:  # SQLite: a write takes the lock, a read cannot
        statement = f"UPDATE {table.table} SET capacity = capacity WHERE {named} RETURNING {', '.join(table.quoted)}"
    with connection.cursor() as cursor:
        cursor.execute(statement, list(keys))
        rows = [table.read(row) for row in cursor.fetchall()]
    return {row["key"]: Declared(row["capacity"], row["declared_at"]) for row in rows}


def _candidates(
    alias: str, room: Mapping[str, int], lines: Mapping[str, Sequence[Line]], now: datetime
) -> dict[str, tuple[int, list[UUID]]]:
    """Lock the first jobs of each key that nobody else holds.

    Return for each how many are out by now, and the jobs in the order in which they are let out.
    """
    asked = [(line, room[key] + SPARE) for key in room for line in lines[key]]
    if not asked:
        return {}
    connection = connections[alias]
    table = columns(Job, ("id", "limit_key", "priority", "next_run_at"), connection)
    moment = columns(Job, ("expires_at",), connection).adapt([now])
    hint = limit_index_hint(connection)
    part = (
        f"SELECT * FROM (SELECT id FROM {table.table} {hint} WHERE {waits(connection)} "
        "AND limit_key = %s AND queue = %s AND (expires_at IS NULL OR expires_at >= %s) "
        "ORDER BY priority DESC, next_run_at, id LIMIT %s) one_line"
    )
    first = " UNION ALL ".join([part] * len(asked))
    chosen = f"JOIN ({first}) first_ones ON first_ones.id = {table.table}.id WHERE {waits(connection)}"
    if connection.vendor == "postgresql":
        # By id, and by nothing that an index knows: its planner would read all that waits.
        chosen = f"WHERE id = ANY (ARRAY({first})) AND (state || hold) = '{State.PENDING.value}{Hold.LIMIT.value}'"
    statement = (
        f"SELECT {table.listed}, (SELECT COUNT(*) FROM {table.table} beside {hint} WHERE {IS_OUT} "
        f"AND beside.limit_key = {table.table}.limit_key) FROM {table.table} {chosen} "
        f"{_skipping(connection, table.table)}"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for line, count in asked for value in (line.key, line.queue, *moment, count)])
        rows = [(table.read(row[:-1]), int(row[-1])) for row in cursor.fetchall()]
    found: dict[str, tuple[int, list[UUID]]] = {}
    for row, out in sorted(rows, key=lambda each: (-each[0]["priority"], each[0]["next_run_at"], each[0]["id"])):
        found.setdefault(row["limit_key"], (out, []))[1].append(row["id"])
    return found


def _skipping(connection: BaseDatabaseWrapper, table: str) -> str:
    features = connection.features
    if not features.has_select_for_update_skip_locked:
        return ""
    no_key = "NO KEY " if features.has_select_for_no_key_update else ""
    of = f"OF {table} " if features.has_select_for_update_of else ""
    return f"FOR {no_key}UPDATE {of}SKIP LOCKED"


def _unlocked(alias: str, rows: QuerySet[Job]) -> QuerySet[Job]:
    """Lock the rows that nobody else holds, where rows are locked."""
    features = connections[alias].features
    if not features.has_select_for_update_skip_locked:
        return rows
    return rows.select_for_update(skip_locked=True, no_key=features.has_select_for_no_key_update)


def ripen(alias: str, now: datetime) -> None:
    """Put what has become due into the line of its limit."""
    for head in heads(connections[alias], EVERY_QUEUE, now, holds=(Hold.LATER,)):
        if head.due_at <= now:
            rows = Job.objects.using(alias).filter(state=State.PENDING.value, hold=Hold.LATER.value)
            rows = rows.filter(queue=head.queue, priority=head.priority, next_run_at__lte=now)
            once_more(alias, partial(_ripen, alias, rows.exclude(expires_at__lt=now), now))


def _ripen(alias: str, rows: QuerySet[Job], now: datetime) -> None:
    with transaction.atomic(using=alias):
        first = _unlocked(alias, rows.order_by("next_run_at", "id"))[:RIPE]
        ids = list(first.values_list("id", flat=True))
        for chunk in in_chunks(ids):
            rows.filter(pk__in=chunk).update(hold=Hold.LIMIT.value, held_at=now)


def withdraw(alias: str, serves: Callable[[str], bool], now: datetime) -> int:
    """Hold again what nobody will claim; see JobStore.withdraw."""
    paused = paused_queues(connections[alias], now)
    out = Job.objects.using(alias).filter(_OUT, state=State.PENDING.value).exclude(expires_at__lt=now)
    seen = out.order_by("limit_key").values_list("id", "queue")[:WITHDRAWN]
    stuck = sorted(job_id for job_id, queue in seen if queue in paused or not serves(queue))
    return sum(once_more(alias, partial(_withdraw, alias, chunk, now)) for chunk in in_chunks(stuck))


def _withdraw(alias: str, ids: Sequence[UUID], now: datetime) -> int:
    with transaction.atomic(using=alias):
        rows = Job.objects.using(alias).filter(_OUT, state=State.PENDING.value, pk__in=ids)
        ours = list(_unlocked(alias, rows.order_by("pk")).values_list("id", flat=True))
        return rows.filter(pk__in=ours).update(**limit_hold(now))


def forget(alias: str, walk: Walk) -> None:
    """Delete the rows of limits that no live job names, some of them at each call; who needs one makes it again."""
    connection = connections[alias]
    limit, job = columns(Limit, ("key",), connection), columns(Job, ("limit_key",), connection)
    key, seen = limit.quoted[0], f"{limit.table}.{limit.quoted[0]}"
    named = [
        f"EXISTS (SELECT 1 FROM {job.table} {limit_index_hint(connection)} WHERE state = '{state.value}' "
        f"AND hold = '{hold.value}' AND {LIMITED} AND limit_key = {seen})"
        for state, hold in [*((State.PENDING, hold) for hold in Hold), (State.IN_PROGRESS, Hold.NONE)]
    ]
    statement = (
        f"SELECT {seen}, {' OR '.join(named)} FROM {limit.table} WHERE {key} > %s ORDER BY {key} LIMIT {FORGOTTEN}"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [walk.forgot])
        rows = cursor.fetchall()
    walk.forgot = rows[-1][0] if len(rows) == FORGOTTEN else ""
    stale = [name for name, is_named in rows if not is_named]
    if stale:
        with transaction.atomic(using=alias):
            Limit.objects.using(alias).filter(pk__in=list(locked_limits(alias, stale))).delete()
