"""The INSERTs of many jobs that differ in their ids and arguments alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django_helisched.models import Job, JobArgs
from django_helisched.stores.orm.insert_statements import Insert, insert_of, unusual_of_args, unusual_of_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.jobs.job import JobSnapshot, Particulars

# No JSON text holds a line break, since one inside a string is written as an escape. Of one text, the server makes an
# array at a fraction of what a list costs the driver.
_LINES = "string_to_array(%s, chr(10))"


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one table: ``own`` has the values of each in the first columns, the others are the same in all."""

    insert: Insert
    own: list[list[Any]]
    same: list[Any]

    @property
    def names(self) -> list[str]:
        """Return the columns whose values differ."""
        return self.insert.given.quoted[: len(self.own)]

    def selected(self) -> str:
        """Return the INSERT ... SELECT from ``given``."""
        same = [f"%s::{kind}" for kind in self.insert.given.types[len(self.own) :]]
        own = ["given.id", *(f"given.{name}" for name in self.names[1:])]
        return f"{self.insert.head} SELECT {', '.join([*own, *same, *self.insert.literals])} FROM given"


def insert_alike(
    connection: BaseDatabaseWrapper,
    record: JobSnapshot,
    payload: Sequence[Any] | None,
    each: Sequence[Particulars],
) -> None:
    """Store ``each`` as ``record`` with an id of its own, and as ``payload`` with arguments of its own.

    On PostgreSQL this is one statement.
    """
    rows = [_job_rows(connection, record, each)]
    if payload is not None:
        rows.append(_args_rows(connection, rows[0].own[0], payload, each))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(*_together(rows))
            return
        for table in rows:
            # MySQL's driver joins them into statements of many rows, and SQLite has no round trips.
            values = [(*own, *table.same) for own in zip(*table.own, strict=True)]
            cursor.executemany(f"{table.insert.head} {table.insert.values}", values)


def _job_rows(connection: BaseDatabaseWrapper, record: JobSnapshot, each: Sequence[Particulars]) -> _Rows:
    names, values = unusual_of_job(record)
    job = insert_of(connection, Job, names)
    write = job.given.writer("id")
    return _Rows(job, [[write(one.id) for one in each]], job.given.adapt(values)[1:])


def _args_rows(
    connection: BaseDatabaseWrapper, ids: list[Any], payload: Sequence[Any], each: Sequence[Particulars]
) -> _Rows:
    names, values = unusual_of_args(payload)
    same = {name: value for name, value in zip(names, values, strict=True) if name not in {"args", "kwargs"}}
    own: list[list[Any]] = [[one.args for one in each], [one.kwargs for one in each]]
    if not any(own[1]):
        own.pop()
    args = insert_of(connection, JobArgs, ("job_id", *("args", "kwargs")[: len(own)], *same))
    write = args.given.writer("args")  # of all columns here
    return _Rows(args, [ids, *([write(value) for value in column] for column in own)], [*map(write, same.values())])


def _together(tables: Sequence[_Rows]) -> tuple[str, list[Any]]:
    """Return PostgreSQL's statement for all tables, and its parameters. The last table has all that differs."""
    ids, *texts = tables[-1].own
    arrays = ", ".join(["%s::uuid[]", *[_LINES] * len(texts)])
    names = ", ".join(["id", *tables[-1].names[1:]])
    parts = [
        f"given AS (SELECT * FROM unnest({arrays}) AS given ({names}))",
        *(f"stored AS ({table.selected()})" for table in tables[:-1]),
    ]
    statement = f"WITH {', '.join(parts)} {tables[-1].selected()}"
    lists = ["{" + ",".join([one.hex for one in ids]) + "}", *("\n".join(lines) for lines in texts)]
    return statement, [*lists, *(value for table in tables for value in table.same)]
