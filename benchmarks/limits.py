"""The limit: what plain SQL does with the same work, one connection, no promises but the database's.

    python -m benchmarks.limits driver|django

A worker that takes 64 rows by one statement, and ends them by one (``noop``) or
one by one, each in a transaction around the row that its body writes
(``write``). No history, no retries, no leases, no priorities beyond an index.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BATCH = 64
IDLE = 0.01  # seconds between two looks at an empty table

CREATE = {
    "postgres": "CREATE TABLE bench_job (id bigserial PRIMARY KEY, state text NOT NULL DEFAULT 'pending', "
    "task text NOT NULL, number int NOT NULL, next_run_at timestamptz NOT NULL DEFAULT now())",
    "sqlite": "CREATE TABLE bench_job (id integer PRIMARY KEY, state text NOT NULL DEFAULT 'pending', "
    "task text NOT NULL, number int NOT NULL, next_run_at text NOT NULL DEFAULT CURRENT_TIMESTAMP)",
}
INDEX = "CREATE INDEX bench_job_hot ON bench_job (next_run_at, id) WHERE state = 'pending'"
INSERT = "INSERT INTO bench_job (task, number) VALUES (%s, %s)"
INSERT_MANY = "INSERT INTO bench_job (task, number) SELECT %s, unnest(%s::int[])"
_NEXT = "SELECT id FROM bench_job WHERE state = 'pending' ORDER BY next_run_at, id LIMIT %s"
_TAKE = "UPDATE bench_job SET state = 'running' WHERE id IN ({}) RETURNING id, task, number"
TAKE = {"postgres": _TAKE.format(f"{_NEXT} FOR UPDATE SKIP LOCKED"), "sqlite": _TAKE.format(_NEXT)}
END_MANY = "UPDATE bench_job SET state = 'success' WHERE id = ANY(%s) AND state = 'running'"
END = "UPDATE bench_job SET state = 'success' WHERE id = %s AND state = 'running'"
WRITE = "INSERT INTO bench_row (number) VALUES (%s)"
UNFINISHED = "SELECT count(*) FROM bench_job WHERE state IN ('pending', 'running')"


class Driver:
    """The database's own driver."""

    def __init__(self) -> None:
        from django.db import connection

        connection.ensure_connection()
        self.vendor = "postgres" if connection.vendor == "postgresql" else "sqlite"
        # The driver's connection as Django has set it up, and nothing of Django from here on.
        self._connection: Any = connection.connection

    def execute(self, sql: str, parameters: Sequence[Any]) -> Any:
        return self._connection.execute(self._spelled(sql), parameters)

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(self._spelled(sql), rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.vendor == "postgres":
            with self._connection.transaction():
                yield
        else:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")

    def _spelled(self, sql: str) -> str:
        return sql if self.vendor == "postgres" else sql.replace("%s", "?")


class Django:
    """Django's cursor and atomic()."""

    def __init__(self) -> None:
        from django.db import connection, transaction

        self.vendor = "postgres" if connection.vendor == "postgresql" else "sqlite"
        self._connection = connection
        self.transaction = transaction.atomic

    def execute(self, sql: str, parameters: Sequence[Any]) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(sql, parameters)
        return cursor

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, rows)


def opened(kind: str) -> Any:
    """Return the connection of this kind; django.setup() was called."""
    return Driver() if kind == "driver" else Django()


def create(database: Any) -> None:
    """Make the table."""
    database.execute(CREATE[database.vendor], [])
    database.execute(INDEX, [])


def insert_many(database: Any, task: str, numbers: Sequence[int]) -> None:
    """Store many rows as fast as the database takes them."""
    if database.vendor == "postgres":
        database.execute(INSERT_MANY, [task, list(numbers)])
    else:
        with database.transaction():
            database.execute_many(INSERT, [(task, number) for number in numbers])


def work(database: Any) -> int:
    """Take, run and end one batch; return how many rows it had."""
    from benchmarks.app import marks

    taken = database.execute(TAKE[database.vendor], [BATCH]).fetchall()
    together = []
    for row_id, task, number in taken:
        if task == "write":
            with database.transaction():
                database.execute(WRITE, [number])
                database.execute(END, [row_id])
        else:
            together.append(row_id)
        marks.mark()
    if together:
        end_many(database, together)
    return len(taken)


def end_many(database: Any, ids: Sequence[int]) -> None:
    """End many rows by one statement."""
    if database.vendor == "postgres":
        database.execute(END_MANY, [list(ids)])
    else:
        marks = ", ".join(["%s"] * len(ids))
        database.execute(END_MANY.replace("= ANY(%s)", f"IN ({marks})"), list(ids))


def main() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    django.setup()
    database, never = opened(sys.argv[1]), threading.Event()
    while True:
        if not work(database):
            never.wait(IDLE)


if __name__ == "__main__":
    main()
