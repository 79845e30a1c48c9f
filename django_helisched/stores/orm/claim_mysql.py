"""MySQL and MariaDB: SELECT ... SKIP LOCKED, then UPDATE, in one short transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from django_helisched.models import Job
from django_helisched.stores.orm.claim_statement import CHANGES, changed, claim_columns, in_order
from django_helisched.stores.orm.connection import once_more
from django_helisched.stores.orm.rows import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.orm.claim_statement import Part, Take


def take(connection: BaseDatabaseWrapper, claim: Take, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the rows taken, oldest first; rows that another worker is taking are passed over."""
    rows = once_more(connection.alias, lambda: _take(connection, claim, parts))
    return in_order([row | {"fence": row["fence"] + 1} for row in rows])


def _take(connection: BaseDatabaseWrapper, claim: Take, parts: Sequence[Part]) -> list[dict[str, Any]]:
    table = claim_columns(connection)
    rows: list[dict[str, Any]] = []
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for part in parts:
            hint = "FORCE INDEX (helisched_job_hot)" if part.is_walk else ""
            cursor.execute(
                f"SELECT {table.listed} FROM {table.table} {hint} WHERE {part.where} FOR UPDATE SKIP LOCKED",
                part.parameters,
            )
            rows += [table.read(row) for row in cursor.fetchall()]
        if rows:
            _write(connection, claim, rows)
    return rows


def _write(connection: BaseDatabaseWrapper, claim: Take, rows: list[dict[str, Any]]) -> None:
    values = changed(connection, claim)
    key = columns(Job, ("id",), connection)
    ids = [key.adapt([row["id"]])[0] for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {key.table} SET {CHANGES} WHERE id IN ({', '.join(['%s'] * len(ids))})", [*values, *ids]
        )
