"""PostgreSQL: pick with SKIP LOCKED, update and read the arguments in one statement, in autocommit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.models import JobArgs
from django_helisched.stores.orm.claim_statement import changes, claim_columns, in_order
from django_helisched.stores.orm.rows import PAYLOAD, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.orm.claim_statement import Part, Take

_LOCKED = "FOR NO KEY UPDATE SKIP LOCKED"


def take(connection: BaseDatabaseWrapper, claim: Take, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the rows taken, with their arguments, oldest first.

    Rows that another worker is taking are passed over.
    """
    table, payload = claim_columns(connection), columns(JobArgs, PAYLOAD, connection)
    assignments, values = changes(connection, claim)
    # No union may lock rows; what it is of may.
    picks = [f"SELECT id AS picked_id FROM {table.table} WHERE {part.where} {_LOCKED}" for part in parts]
    picked = picks[0] if len(picks) == 1 else " UNION ALL ".join(f"SELECT * FROM ({pick}) part" for pick in picks)
    statement = (
        f"WITH picked AS MATERIALIZED ({picked}), "
        f"taken AS (UPDATE {table.table} SET {assignments} FROM picked WHERE id = picked_id RETURNING {table.quick}) "
        f"SELECT taken.*, {payload.listed} FROM taken LEFT JOIN {payload.table} ON job_id = taken.id"
    )
    width = len(table.names)
    with connection.cursor() as cursor:
        cursor.execute(statement, [*(value for part in parts for value in part.parameters), *values])
        rows = [(table.read(row[:width]), payload.read(row[width:])) for row in cursor.fetchall()]
    return in_order([job if arguments["args"] is None else job | arguments for job, arguments in rows])
