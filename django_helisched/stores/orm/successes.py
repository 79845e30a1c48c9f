"""Settle what succeeded, many at a time: nearly every job ends so, and all their rows change alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.jobs.job import State
from django_helisched.jobs.outcome import AttemptOutcome
from django_helisched.models import Attempt, Job
from django_helisched.stores.orm import successes_sqlite
from django_helisched.stores.orm.arrays import plain_array, text_array
from django_helisched.stores.orm.rows import columns
from django_helisched.stores.orm.success_rows import ALIKE, ATTEMPT, CHANGES, INTO, OURS, attempt_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.jobs.outcome import Outcome
    from django_helisched.stores.base import Settlement

_JOB = ("id", "completed_at", "fence")
_CLAIMED = "id = mine_id AND fence = mine_fence"


def is_plain(outcome: Outcome) -> bool:
    """Tell whether an outcome is a success like any other."""
    return (
        outcome.state is State.SUCCESS
        and outcome.attempt is AttemptOutcome.SUCCESS
        and not (outcome.failures or outcome.losses or outcome.report.line)
    )


def is_one_statement(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether ``settle_successes`` needs no transaction around it."""
    return connection.vendor == "postgresql"


def settle_successes(connection: BaseDatabaseWrapper, settlements: Sequence[Settlement], now: datetime) -> set[int]:
    """End attempts of one worker that succeeded, with their Attempt rows; return the ids whose claims held, as numbers.

    Rows are locked by id. On PostgreSQL all of it is one statement; elsewhere
    the caller has a transaction open.
    """
    return _DIALECTS[connection.vendor](connection, settlements, now)


def _postgresql(connection: BaseDatabaseWrapper, settlements: Sequence[Settlement], now: datetime) -> set[int]:
    job, attempt = columns(Job, _JOB, connection), columns(Attempt, ATTEMPT, connection)
    rows = [attempt.adapt(row) for row in map(attempt_values, settlements)]
    ids, numbers, started, results, logs = zip(*rows, strict=True)
    statement = (
        "WITH mine AS MATERIALIZED (SELECT * FROM unnest(%s::uuid[], %s::bigint[], %s::int[], %s::timestamptz[], "
        "%s::text[], %s::text[]) AS given (mine_id, mine_fence, number, started_at, result, log)), "
        f"locked AS MATERIALIZED (SELECT id FROM {job.table} JOIN mine ON {_CLAIMED} "
        f"WHERE {OURS} ORDER BY id FOR NO KEY UPDATE OF {job.table}), "
        f"ended AS (UPDATE {job.table} SET {CHANGES} FROM locked WHERE {job.table}.id = locked.id "
        f"RETURNING {job.table}.id) "
        f"INSERT INTO {attempt.table} {INTO} "
        f"SELECT ended.id, number, started_at, result, log, {ALIKE} FROM ended JOIN mine ON ended.id = mine_id "
        "RETURNING job_id"
    )
    fences = [settlement.claim.fence for settlement in settlements]
    arrays = [*map(plain_array, (ids, fences, numbers, started)), text_array(results), text_array(logs)]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*arrays, now, now, settlements[0].claim.lease_holder])
        return {row[0].int for row in cursor.fetchall()}


def _mysql(connection: BaseDatabaseWrapper, settlements: Sequence[Settlement], now: datetime) -> set[int]:
    job = columns(Job, _JOB, connection)
    adapted, (ended_at,) = _keys(connection, settlements), [job.writer("completed_at")(now)]
    fences = {settlement.claim.id: settlement.claim.fence for settlement in settlements}
    with connection.cursor() as cursor:
        cursor.execute(
            # By the ids, however many: through an index on the state it would lock what others run.
            f"SELECT {job.listed} FROM {job.table} FORCE INDEX (PRIMARY) "
            f"WHERE id IN ({_marks(adapted)}) AND {OURS} ORDER BY id FOR UPDATE",
            list(adapted.values()),
        )
        locked = [job.read(row) for row in cursor.fetchall()]
        held = {row["id"] for row in locked if row["fence"] == fences[row["id"]]}
        if held:
            keys = [adapted[job_id] for job_id in held]
            cursor.execute(f"UPDATE {job.table} SET {CHANGES} WHERE id IN ({_marks(keys)})", [ended_at, *keys])
    _write_attempts(connection, [settlement for settlement in settlements if settlement.claim.id in held], now)
    return {job_id.int for job_id in held}


_DIALECTS: dict[str, Callable[[BaseDatabaseWrapper, Sequence[Settlement], datetime], set[int]]] = {
    "postgresql": _postgresql,
    "mysql": _mysql,
    "sqlite": successes_sqlite.settle_successes,
}


def _write_attempts(connection: BaseDatabaseWrapper, settlements: Sequence[Settlement], now: datetime) -> None:
    if not settlements:
        return
    attempt = columns(Attempt, ATTEMPT, connection)
    alike = [columns(Attempt, ("ended_at",), connection).writer("ended_at")(now), settlements[0].claim.lease_holder]
    rows = [[*attempt.adapt(attempt_values(settlement)), *alike] for settlement in settlements]
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {attempt.table} {INTO} VALUES (%s, %s, %s, %s, %s, {ALIKE})", rows)


def _keys(connection: BaseDatabaseWrapper, settlements: Sequence[Settlement]) -> dict[UUID, Any]:
    write = columns(Job, _JOB, connection).writer("id")
    return {settlement.claim.id: write(settlement.claim.id) for settlement in settlements}


def _marks(values: Any) -> str:
    return ", ".join(["%s"] * len(values))
