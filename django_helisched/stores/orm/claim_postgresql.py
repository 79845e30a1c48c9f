"""PostgreSQL: pick with SKIP LOCKED, update and read the arguments in one statement, in autocommit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.models import JobArgs
from django_helisched.stores.orm.claim_statement import CHANGES, changed, claim_columns, in_order
from django_helisched.stores.orm.rows import PAYLOAD, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.orm.claim_statement import Part, Take

LOCKED = "FOR NO KEY UPDATE SKIP LOCKED"


def take(connection: BaseDatabaseWrapper, claim: Take, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the rows taken, with their arguments, oldest first.

    Rows that another worker is taking are passed over.
    """
    taking = Taking(connection)
    # No union may lock rows; what it is of may.
    picks = [f"SELECT id AS picked_id FROM {taking.table} WHERE {part.where} {LOCKED}" for part in parts]
    picked = picks[0] if len(picks) == 1 else " UNION ALL ".join(f"SELECT * FROM ({pick}) part" for pick in picks)
    values = [value for part in parts for value in part.parameters]
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH {taking.tables(picked)} SELECT {taking.listed} FROM taken {taking.join}",
            [*values, *changed(connection, claim)],
        )
        return in_order([taking.read(row) for row in cursor.fetchall()])


class Taking:
    """How a statement takes the jobs whose ids its table ``picked`` gives, and what it returns of them."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._job, self._payload = claim_columns(connection), columns(JobArgs, PAYLOAD, connection)
        self.table = self._job.table
        self.listed = f"taken.*, {self._payload.listed}"
        self.join = f"LEFT JOIN {self._payload.table} ON job_id = taken.id"

    def tables(self, picked: str) -> str:
        """Return the tables ``picked``, asked by this text, and ``taken``, whose parameters are those of CHANGES."""
        return (
            f"picked AS MATERIALIZED ({picked}), "
            f"taken AS (UPDATE {self.table} SET {CHANGES} FROM picked WHERE id = picked_id RETURNING {self._job.quick})"
        )

    def read(self, row: Sequence[Any]) -> dict[str, Any]:
        """Return a row that ``listed`` gave, with its arguments where it has some."""
        width = len(self._job.names)
        job = self._job.read(row[:width])
        if row[width] is not None:
            job |= self._payload.read(row[width:])
        return job
