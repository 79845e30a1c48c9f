"""Take due jobs: each due head is walked from its oldest row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_helisched.jobs.job import ClaimedJob
from django_helisched.jobs.records import maker
from django_helisched.models import Job, JobArgs
from django_helisched.stores.base import CLAIM_LIMIT
from django_helisched.stores.orm import claim_lone, claim_mysql, claim_postgresql, claim_sqlite
from django_helisched.stores.orm.claim_statement import first_of, named
from django_helisched.stores.orm.heads import due_heads, paused_queues
from django_helisched.stores.orm.rows import PAYLOAD, columns
from django_helisched.stores.visits import goes_by_age, visit_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.base import QueueFilter
    from django_helisched.stores.orm.claim_statement import Take
    from django_helisched.stores.orm.heads import Head
    from django_helisched.stores.orm.marks import Marks

HEADS = 64  # that one statement asks about: SQLite takes 500
VISITS = 128  # that one statement makes: of six parameters each, and the smallest SQLite takes 999

_claimed = maker(ClaimedJob)

_DIALECTS = {"postgresql": claim_postgresql.take, "mysql": claim_mysql.take, "sqlite": claim_sqlite.take}


def claim(alias: str, take: Take, marks: Marks, *, limit: int, queues: QueueFilter, turn: int) -> list[ClaimedJob]:
    """Take up to ``limit`` due jobs; see JobStore.claim."""
    connection = connections[alias]
    limit = min(limit, CLAIM_LIMIT)
    if limit <= 0:
        return []
    visit = _oldest_first if goes_by_age(turn) else _by_priority
    rows: list[dict[str, Any]] = []
    # What is the oldest of all only a new listing can tell.
    kept = [] if goes_by_age(turn) else marks.kept(queues)
    if kept:
        paused = paused_queues(connection, take.now)
        rows = visit(connection, take, [head for head in kept if head.queue not in paused], limit, turn)
    elif connection.vendor == "postgresql" and claim_lone.is_spelled_out(queues) and marks.are_needless:
        lone = marks.timed(
            lambda: claim_lone.take(connection, take, queues, limit), taken=lambda lone: len(lone.rows or ())
        )
        rows = visit(connection, take, lone.heads, limit, turn) if lone.rows is None else lone.rows
        return _with_arguments(connection, take, rows)
    if len(rows) < limit:
        due = marks.listed(queues, lambda: due_heads(connection, queues, take.now))
        rows += visit(connection, take, due, limit - len(rows), turn)
    return _with_arguments(connection, take, rows)


@dataclass(slots=True)
class _Visit:
    """One queue in the order of a claim, and what it has given so far."""

    heads: list[Head]  # which may have more, the highest priority first; all visits of a queue share them
    quota: int
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def wants(self) -> int:
        return self.quota - len(self.rows) if self.heads else 0


def _by_priority(
    connection: BaseDatabaseWrapper, take: Take, due: Sequence[Head], limit: int, turn: int
) -> list[dict[str, Any]]:
    by_queue: dict[str, list[Head]] = {}
    for head in sorted(due, key=lambda head: -head.priority):
        by_queue.setdefault(head.queue, []).append(head)
    visits = visit_order(by_queue, limit, turn)
    # First an equal share for each, then whatever is left in the same order.
    rows = _visited(connection, take, [_Visit(by_queue[name], share) for name, share in visits], limit)
    return rows + _visited(connection, take, [_Visit(by_queue[name], limit) for name, _ in visits], limit - len(rows))


def _visited(connection: BaseDatabaseWrapper, take: Take, visits: Sequence[_Visit], limit: int) -> list[dict[str, Any]]:
    """Take what the visits want, up to ``limit``: by one statement, and one more for each head that had less."""
    while asked := _fitting(visits, limit - sum(len(visit.rows) for visit in visits)):
        parts = [first_of(connection, take, visit.heads[0], count) for visit, count in asked]
        given: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in _DIALECTS[connection.vendor](connection, take, parts):
            given.setdefault((row["queue"], row["priority"]), []).append(row)
        for visit, count in asked:
            got = given.get(_place(visit.heads[0]), [])
            visit.rows += got
            if len(got) < count:
                visit.heads.pop(0)  # nothing is left here that this claim could get
    return [row for visit in visits for row in visit.rows]


def _fitting(visits: Sequence[_Visit], room: int) -> list[tuple[_Visit, int]]:
    """Return the visits that want more, and how much, as far as there is room."""
    fitting: list[tuple[_Visit, int]] = []
    for visit in visits:
        count = min(visit.wants, room)
        if count > 0 and len(fitting) < VISITS:
            fitting.append((visit, count))
            room -= count
    return fitting


def _place(head: Head) -> tuple[str, int]:
    return head.queue, head.priority


def _oldest_first(
    connection: BaseDatabaseWrapper, take: Take, due: Sequence[Head], limit: int, turn: int
) -> list[dict[str, Any]]:
    if len(due) <= 1:
        return _by_priority(connection, take, due, limit, turn)
    # As many heads as rows: the first ones of these are older than all that the others have.
    by_age = sorted(due, key=lambda head: head.due_at)
    youngest = by_age[min(limit, len(by_age)) - 1].due_at
    candidates = _candidates(connection, take, [head for head in by_age if head.due_at <= youngest], limit)
    ids = [job_id for _, job_id in sorted(candidates)[:limit]]
    return _DIALECTS[connection.vendor](connection, take, [named(connection, take, ids)]) if ids else []


def _candidates(
    connection: BaseDatabaseWrapper, take: Take, due: Sequence[Head], limit: int
) -> list[tuple[datetime, UUID]]:
    table = columns(Job, ("next_run_at", "id"), connection)
    hint = "FORCE INDEX (helisched_job_hot)" if connection.vendor == "mysql" else ""
    found: list[tuple[datetime, UUID]] = []
    for start in range(0, len(due), HEADS):
        parts = [first_of(connection, take, head, limit) for head in due[start : start + HEADS]]
        looks = [
            f"SELECT * FROM (SELECT {table.listed} FROM {table.table} {hint} WHERE {part.where}) part" for part in parts
        ]
        with connection.cursor() as cursor:
            # Of all that the heads offer only the oldest come here.
            cursor.execute(
                f"{' UNION ALL '.join(looks)} ORDER BY next_run_at, id LIMIT %s",
                [*(value for part in parts for value in part.parameters), limit],
            )
            rows = [table.read(row) for row in cursor.fetchall()]
        found += [(row["next_run_at"], row["id"]) for row in rows]
    return found


def _with_arguments(connection: BaseDatabaseWrapper, take: Take, rows: Iterable[dict[str, Any]]) -> list[ClaimedJob]:
    rows = list(rows)
    payloads = _payloads(connection, [row["id"] for row in rows if row["has_args"] and "args" not in row])
    for row in rows:
        row["lease_holder"], row["lease_expires_at"] = take.worker_id, take.lease_expires_at
        row.update(payloads.get(row["id"], ()) if payloads else ())
    return [_claimed(**row) for row in rows]


def _payloads(connection: BaseDatabaseWrapper, ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    if not ids:
        return {}
    table = columns(JobArgs, ("job_id", *PAYLOAD), connection)
    write = table.writer("job_id")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(table.quoted)} FROM {table.table} WHERE job_id IN ({', '.join(['%s'] * len(ids))})",
            [write(job_id) for job_id in ids],
        )
        found = [table.read(row) for row in cursor.fetchall()]
    return {payload.pop("job_id"): payload for payload in found}
