"""SQLite: end many successes by few steps.

Its driver lets go of the interpreter for each row that it writes or hands over, and
waits for the other threads to have it back: that costs more than the row. What
comes and goes as one JSON text is one step.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django_helisched.models import Attempt, Job
from django_helisched.stores.orm.rows import columns
from django_helisched.stores.orm.success_rows import (
    ALIKE,
    ATTEMPT,
    CHANGES,
    INTO,
    KEYLESS_CHANGES,
    OURS,
    attempt_values,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.base import Settlement

LONG = 1000  # characters of a result that goes as a parameter of its own

_GIVEN = "SELECT json_extract(value, '$[0]') AS mine_id, json_extract(value, '$[1]') AS mine_fence FROM json_each(%s)"
_FIELDS = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(ATTEMPT)))
_CHANGES = {False: KEYLESS_CHANGES, True: CHANGES}


def settle_successes(connection: BaseDatabaseWrapper, settlements: Sequence[Settlement], now: datetime) -> set[int]:
    """Return the ids of those whose claims held, as numbers; the caller has a transaction open."""
    key = columns(Job, ("id",), connection).writer("id")
    by_key: dict[str, Settlement] = {key(settlement.claim.id): settlement for settlement in settlements}
    lock(connection)
    held = _held(connection, by_key)
    for has_idempotency_key, keys in held.items():
        if keys:
            _end(connection, keys, now, _CHANGES[has_idempotency_key])
    ended = {key: by_key[key] for keys in held.values() for key in keys}
    if ended:
        _write_attempts(connection, ended, now)
    return {settlement.claim.id.int for settlement in ended.values()}


def lock(connection: BaseDatabaseWrapper) -> None:
    """Take the write lock, where the transaction has not begun with it: a read lock that has to grow fails at once."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {columns(Job, ('id',), connection).table} SET fence = fence WHERE id = ''")


def _held(connection: BaseDatabaseWrapper, by_key: dict[str, Settlement]) -> dict[bool, list[str]]:
    """Return the jobs that are ours still: those without an idempotency key, and those with one.

    Of each column that it assigns SQLite writes the index anew, also where the value stays.
    """
    table = columns(Job, ("id",), connection).table
    pairs = json.dumps([[key, settlement.claim.fence] for key, settlement in by_key.items()])
    with connection.cursor() as cursor:
        # CROSS JOIN: from what is given to the rows, and not from all rows in progress, or without a key, to those.
        cursor.execute(
            "SELECT json_group_array(id) FILTER (WHERE key_digest IS NULL), "
            "json_group_array(id) FILTER (WHERE key_digest IS NOT NULL) "
            f"FROM ({_GIVEN}) CROSS JOIN {table} WHERE id = mine_id AND fence = mine_fence AND {OURS}",
            [pairs],
        )
        without, with_key = cursor.fetchone()
    return {False: json.loads(without), True: json.loads(with_key)}


def _end(connection: BaseDatabaseWrapper, keys: Sequence[str], now: datetime, changes: str) -> None:
    job = columns(Job, ("completed_at",), connection)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {job.table} SET {changes} WHERE id IN (SELECT value FROM json_each(%s))",
            [job.writer("completed_at")(now), json.dumps(keys)],
        )


def _write_attempts(connection: BaseDatabaseWrapper, ended: dict[str, Settlement], now: datetime) -> None:
    attempt = columns(Attempt, ATTEMPT[1:], connection)
    holder = next(iter(ended.values())).claim.lease_holder
    alike = [columns(Attempt, ("ended_at",), connection).writer("ended_at")(now), holder]
    rows = [[key, *attempt.adapt(attempt_values(settlement)[1:])] for key, settlement in ended.items()]
    short = [row for row in rows if _is_short(row)]
    with connection.cursor() as cursor:
        if short:
            cursor.execute(
                f"INSERT INTO {attempt.table} {INTO} SELECT {_FIELDS}, {ALIKE} FROM json_each(%s)",
                [*alike, json.dumps(short)],
            )
        if len(short) < len(rows):
            cursor.executemany(
                f"INSERT INTO {attempt.table} {INTO} VALUES (%s, %s, %s, %s, %s, {ALIKE})",
                [[*row, *alike] for row in rows if not _is_short(row)],
            )


def _is_short(row: Sequence[Any]) -> bool:
    """Tell whether an attempt says little. A log may hold any character, and JSON's text functions end at a NUL."""
    _, _, _, result, log = row
    return not log and (result is None or len(result) < LONG)
