"""PostgreSQL: list the due heads and, where there is only one, take from it, by one statement.

Most of the time all that is due stands under one head: an idle process is woken by one
job, and under load most projects fill one queue. A listing by itself costs as much as a claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_helisched.jobs.job import Hold
from django_helisched.models import Job
from django_helisched.stores.orm import heads_walk
from django_helisched.stores.orm.claim_postgresql import LOCKED, Taking
from django_helisched.stores.orm.claim_statement import OLDEST_FIRST, as_of, changed, in_order, startable
from django_helisched.stores.orm.heads import Head
from django_helisched.stores.orm.native import fetched
from django_helisched.stores.orm.rows import columns, milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.base import QueueFilter
    from django_helisched.stores.orm.claim_statement import Take

_WILD = frozenset("*?[")
_PLACE = "queue = head.queue AND priority = head.priority AND next_run_at >= head.due"
_LISTED = ("queue", "priority", "next_run_at")


@dataclass(frozen=True, slots=True)
class Lone:
    """The due heads; and the rows taken from the only one, or None where there were several and nothing was taken."""

    heads: list[Head]
    rows: list[dict[str, Any]] | None


def is_spelled_out(queues: QueueFilter) -> bool:
    """Tell whether a filter has names only, which SQL can compare, and no patterns."""
    return not any(_WILD.intersection(pattern) for pattern in (*queues.include, *queues.exclude))


def take(connection: BaseDatabaseWrapper, claim: Take, queues: QueueFilter, limit: int) -> Lone:
    """List the due heads of ``queues``, which are spelled out, and take up to ``limit`` jobs where it is one.

    Rows that another worker is taking are passed over.
    """
    ask = _statement(connection.alias, len(queues.include), len(queues.exclude))
    now = columns(Job, ("next_run_at",), connection).writer("next_run_at")(claim.now)
    listing = [*[now] * (heads_walk.TIMES + 2), *queues.include, *queues.exclude]
    found = fetched(connection, ask, [*listing, *as_of(connection, claim), limit, *changed(connection, claim)])
    heads = _heads(connection, found)
    if len(heads) > 1:
        return Lone(heads, None)
    has_id = len(_LISTED)
    read = Taking(connection).read
    return Lone(heads, in_order([read(row[has_id:]) for row in found if row[has_id] is not None]))


@lru_cache(maxsize=64)
def _statement(alias: str, included: int, excluded: int) -> str:
    connection = connections[alias]
    served = "".join(
        f" AND queue {word} ({', '.join(['%s'] * count)})"
        for word, count in (("IN", included), ("NOT IN", excluded))
        if count
    )
    due = (
        f"SELECT queue, priority, due FROM ({heads_walk.statement(connection, Hold.NONE)}) head "
        f"WHERE due <= %s AND (paused_at IS NULL OR until <= %s){served}"
    )
    taking = Taking(connection)
    # Rows are locked as they are found: where there are several heads none may be looked for.
    picked = (
        "SELECT part.id AS picked_id FROM (SELECT * FROM due WHERE (SELECT count(*) FROM due) = 1) head, "
        f"LATERAL (SELECT id FROM {taking.table} WHERE {startable(_PLACE)} {OLDEST_FIRST} LIMIT %s {LOCKED}) part"
    )
    return (
        f"WITH due AS MATERIALIZED ({due}), {taking.tables(picked)} "
        f"SELECT due.queue, due.priority, {milliseconds('due.due')}, {taking.listed} "
        f"FROM due LEFT JOIN taken ON TRUE {taking.join}"
    )


def _heads(connection: BaseDatabaseWrapper, rows: Sequence[Sequence[Any]]) -> list[Head]:
    table = columns(Job, _LISTED, connection)
    found = [table.read(row) for row in dict.fromkeys(tuple(row[: len(_LISTED)]) for row in rows)]
    return [Head(queue=row["queue"], priority=row["priority"], due_at=row["next_run_at"]) for row in found]
