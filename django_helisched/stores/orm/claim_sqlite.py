"""SQLite: one UPDATE, which takes the only write lock there is. Never read, then write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.stores.orm.claim_statement import CHANGES, changed, claim_columns, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.orm.claim_statement import Part, Take


def take(connection: BaseDatabaseWrapper, claim: Take, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the rows taken, oldest first."""
    table = claim_columns(connection)
    values = changed(connection, claim)
    picks = [f"SELECT id FROM {table.table} WHERE {part.where}" for part in parts]
    picked = picks[0] if len(picks) == 1 else " UNION ALL ".join(f"SELECT * FROM ({pick})" for pick in picks)
    statement = f"UPDATE {table.table} SET {CHANGES} WHERE id IN ({picked}) RETURNING {', '.join(table.quoted)}"
    with connection.cursor() as cursor:
        cursor.execute(statement, [*values, *(value for part in parts for value in part.parameters)])
        return in_order([table.read(row) for row in cursor.fetchall()])
