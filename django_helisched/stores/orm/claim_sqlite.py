"""SQLite: pick and update in a transaction that begins with the write lock, so that nobody comes between.

Its driver lets go of the interpreter for each row that it hands over. All rows of a
claim, and their arguments, come as one JSON text.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import DataError, OperationalError, connections, transaction

from django_helisched.models import JobArgs
from django_helisched.stores.orm.claim_statement import CHANGES, changed, claim_columns, in_order
from django_helisched.stores.orm.rows import PAYLOAD, columns
from django_helisched.stores.orm.successes_sqlite import lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.orm.claim_statement import Part, Take


def take(connection: BaseDatabaseWrapper, claim: Take, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the rows taken, oldest first, with their arguments where these are not too long."""
    picks = [f"SELECT id FROM {claim_columns(connection).table} WHERE {part.where}" for part in parts]
    picked = picks[0] if len(picks) == 1 else " UNION ALL ".join(f"SELECT * FROM ({pick})" for pick in picks)
    values = [value for part in parts for value in part.parameters]
    is_ours = connection.get_autocommit()
    with transaction.atomic(using=connection.alias, savepoint=False), connection.cursor() as cursor:
        if not (is_ours and _begins_with_lock(connection)):
            lock(connection)
        try:
            found = _read(cursor, _reading(connection.alias, with_arguments=True).format(picked), values)
        except (DataError, OperationalError):
            # All arguments together are longer than a text can be, or those of one job are no JSON any more: nothing
            # would be claimed any more. The caller reads them one by one.
            found = _read(cursor, _reading(connection.alias, with_arguments=False).format(picked), values)
        if not found:
            return []
        cursor.execute(
            f"UPDATE {claim_columns(connection).table} SET {CHANGES} WHERE id IN (SELECT value FROM json_each(%s))",
            [*changed(connection, claim), json.dumps([row[0] for row in found])],
        )
    return in_order(_taken(connection, found))


def _begins_with_lock(connection: Any) -> bool:
    return connection.transaction_mode in {"IMMEDIATE", "EXCLUSIVE"}


def _read(cursor: Any, statement: str, values: Sequence[Any]) -> list[list[Any]]:
    cursor.execute(statement, values)
    found: list[list[Any]] = json.loads(cursor.fetchone()[0])
    return found


@lru_cache(maxsize=16)
def _reading(alias: str, *, with_arguments: bool) -> str:
    job, payload = claim_columns(connections[alias]), columns(JobArgs, PAYLOAD, connections[alias])
    # Arguments are JSON already, and become part of the whole.
    arguments = ", ".join(f"json({payload.table}.{column})" if with_arguments else "NULL" for column in payload.quoted)
    return (
        f"SELECT json_group_array(json_array({job.listed}, {arguments})) FROM ({{}}) picked "
        f"CROSS JOIN {job.table} ON {job.table}.id = picked.id "
        f"LEFT JOIN {payload.table} ON {payload.table}.job_id = picked.id"
    )


def _taken(connection: BaseDatabaseWrapper, found: Sequence[list[Any]]) -> list[dict[str, Any]]:
    job = claim_columns(connection)
    names, width = (*job.names, *PAYLOAD), len(job.names)
    rows = []
    for values in found:
        # A job without arguments has no such names: its record knows what stands for them.
        row = dict(zip(names if values[width] is not None else job.names, job.converted(values), strict=False))
        row["fence"] += 1
        rows.append(row)
    return rows
