"""The INSERT of one job that is as most are: what it shares with the others of its function is part of the statement.

To make a row and a statement from 40 columns costs this process as much as to send it. Here both are known but for an
id, the times and the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections

from django_helisched.jobs.job import NewJob
from django_helisched.jobs.payload import dumps
from django_helisched.jobs.records import remade
from django_helisched.models import Job, JobArgs
from django_helisched.stores.orm.insert_statements import insert_of, unusual_of_job, writes_together
from django_helisched.stores.orm.new_rows import new_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db import models
    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.jobs.job import JobSnapshot

# Many jobs have these in common.
_SHARED = ("fn_path", "kind", "at_most_once", "queue", "priority", "max_failures", "timeout", "app_version", "trigger")
# A job that has one of these is not a usual one.
_SPECIAL = (
    *("idempotency_key", "unique_until", "limit_key", "overlap_key", "hold", "name", "space", "expires_at"),
    *("on_complete", "context", "options", "meta", "parent_id", "cron_id", "batch_id"),
)
_shared_of, _special_of = attrgetter(*_SHARED), attrgetter(*_SPECIAL)
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_PATTERN = NewJob(id=UUID(int=0), fn_path="", created_at=_NEVER, due_at=_NEVER, next_run_at=_NEVER)
_NOTHING_SPECIAL = _special_of(_PATTERN)
# What each has for itself: a column's name, and that of its parameter. Three times that are one are sent once.
_OWN = {name: name for name in ("id", "created_at", "due_at", "next_run_at", "args", "kwargs")} | {"job_id": "id"}
_OWN_AT_ONCE = _OWN | {"due_at": "created_at", "next_run_at": "created_at"}


def insert_usual(connection: BaseDatabaseWrapper, job: NewJob) -> JobSnapshot | None:
    """Store a job with its arguments and return its row; None: it is not a usual one, and nothing is stored.

    One statement, where the database can do that; elsewhere no job is usual.
    """
    if _special_of(job) != _NOTHING_SPECIAL or not writes_together(connection):
        return None
    at_once = job.due_at is job.created_at and job.next_run_at is job.created_at
    usual = _usual(connection.alias, _shared_of(job), at_once, (bool(job.args), bool(job.kwargs)))
    with connection.cursor() as cursor:
        cursor.execute(usual.statement, _parameters(job, at_once=at_once))
    times = {"created_at": job.created_at, "due_at": job.due_at, "next_run_at": job.next_run_at}
    return remade(usual.row, {"id": job.id, **times})


def _parameters(job: NewJob, *, at_once: bool) -> dict[str, str]:
    given = {"id": job.id.hex, "created_at": job.created_at.isoformat()}
    if not at_once:
        given["due_at"], given["next_run_at"] = job.due_at.isoformat(), job.next_run_at.isoformat()
    if job.args:
        given["args"] = dumps(job.args)
    if job.kwargs:
        given["kwargs"] = dumps(job.kwargs)
    return given


@dataclass(frozen=True, slots=True)
class _Usual:
    statement: str
    row: JobSnapshot  # its id and times are placeholders


@lru_cache(maxsize=256)
def _usual(alias: str, shared: tuple[Any, ...], at_once: bool, has: tuple[bool, bool]) -> _Usual:  # noqa: FBT001  # a key
    connection = connections[alias]
    has_args, has_kwargs = has
    row = new_row(replace(_PATTERN, **dict(zip(_SHARED, shared, strict=True)), args=[0] if any(has) else []))
    own = dict(_OWN_AT_ONCE if at_once else _OWN)
    statement = _spelled(connection, Job, *unusual_of_job(row), own)
    if row.has_args:
        if not has_args:
            del own["args"]
        names = ("job_id", "args", "kwargs") if has_kwargs else ("job_id", "args")
        statement = f"WITH stored AS ({statement}) {_spelled(connection, JobArgs, names, [row.id, [], {}], own)}"
    return _Usual(statement, row)


def _spelled(
    connection: BaseDatabaseWrapper,
    model: type[models.Model],
    names: tuple[str, ...],
    values: Sequence[Any],
    own: Mapping[str, str],
) -> str:
    """Return the INSERT of a row: parameters for its ``own`` columns, and the values of the others."""
    insert = insert_of(connection, model, names)
    ops: Any = connection.ops  # PostgreSQL's
    texts = [
        f"%({own[name]})s" if name in own else ops.compose_sql("%s", [value]).replace("%", "%%")
        for name, value in zip(names, insert.given.adapt_values(values[: len(names)]), strict=True)
    ]
    return f"{insert.head} VALUES ({', '.join([*texts, *insert.literals])})"
