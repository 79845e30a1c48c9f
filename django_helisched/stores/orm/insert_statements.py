"""The INSERTs of new rows, with as few round trips and parameters as each database allows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from operator import attrgetter, ne
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, connections, models, transaction

from django_helisched.jobs.job import DEFAULT_QUEUE, State, Trigger, UniqueUntil
from django_helisched.models import Job, JobArgs
from django_helisched.stores.orm.connection import is_duplicate_key
from django_helisched.stores.orm.rows import PAYLOAD, SNAPSHOT, Columns, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.jobs.job import JobSnapshot

# What new jobs have in common is part of the statement: a parameter costs more, here and on the server.
_ALWAYS: dict[str, Any] = {
    "failure_reason": "",
    "attempts": 0,
    "losses": 0,
    "attempt_count": 0,
    "lease_holder": None,
    "lease_expires_at": None,
    "fence": 0,
    "cancel_requested_at": None,
    "started_at": None,
    "last_error": "",
}
_USUALLY: dict[str, Any] = {
    "at_most_once": False,
    "state": State.PENDING.value,
    "hold": "",
    "held_at": None,
    "queue": DEFAULT_QUEUE,
    "priority": 0,
    "expires_at": None,
    "timeout": None,
    "max_failures": 3,
    "key_digest": None,
    "idempotency_key": "",
    "unique_until": UniqueUntil.PRUNED.value,
    "limit_key": "",
    "overlap_key": "",
    "app_version": "",
    "name": "",
    "space": "",
    "trigger": Trigger.API.value,
    "has_args": True,
    "on_complete": "",
    "parent_id": None,
    "cron_id": None,
    "batch_id": None,
    "completed_at": None,
}
_USUAL_ARGS: dict[str, Any] = {"kwargs": {}, "context": None, "options": {}, "meta": {}}
_USUAL: dict[type[models.Model], dict[str, Any]] = {Job: _USUALLY | _ALWAYS, JobArgs: _USUAL_ARGS}
_GIVEN = tuple(name for name in SNAPSHOT if name not in _ALWAYS)
_given_of = attrgetter(*_GIVEN)
_ARGS = ("job_id", *PAYLOAD)


class Insert:
    """The INSERT of rows of a model: some columns are given, the others are what they usually are."""

    def __init__(self, model: type[models.Model], names: tuple[str, ...], connection: BaseDatabaseWrapper) -> None:
        usual = _USUAL.get(model, {}).items()
        # A column that is not named is NULL: it costs the server nothing.
        others = {name: value for name, value in usual if value is not None and name not in names}
        self.given: Columns = columns(model, names, connection)
        self.literals = [_literal(value) for value in others.values()]
        quoted = [*self.given.quoted, *(connection.ops.quote_name(name) for name in others)]
        self.head = f"INSERT INTO {self.given.table} ({', '.join(quoted)})"
        self.values = f"VALUES ({', '.join([*['%s'] * len(names), *self.literals])})"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return "'{}'" if value == {} else str(value).upper()


def insert_of(connection: BaseDatabaseWrapper, model: type[models.Model], names: tuple[str, ...]) -> Insert:
    """Return the (shared) INSERT of a model in which these columns are given."""
    return _insert_of(model, names, connection.alias, _settings_of(connection))


def _settings_of(connection: BaseDatabaseWrapper) -> tuple[str, str]:
    return connection.vendor, str(connection.timezone)


@lru_cache(maxsize=256)
def _insert_of(model: type[models.Model], names: tuple[str, ...], alias: str, _settings: tuple[str, str]) -> Insert:
    return Insert(model, names, connections[alias])


def unusual(
    model: type[models.Model], names: tuple[str, ...], values: Sequence[Any]
) -> tuple[tuple[str, ...], list[Any]]:
    """Return the columns that an INSERT must be given, and their values."""
    differ = list(map(ne, values, _usual_of(model, names)))
    return tuple(compress(names, differ)), list(compress(values, differ))


@lru_cache(maxsize=16)
def _usual_of(model: type[models.Model], names: tuple[str, ...]) -> tuple[Any, ...]:
    # An object that equals nothing: such a column is always given.
    return tuple(_USUAL.get(model, {}).get(name, object()) for name in names)


def unusual_of_job(record: JobSnapshot) -> tuple[tuple[str, ...], list[Any]]:
    """Return the columns in which a new job's row is not what it usually is, the id first."""
    return unusual(Job, _GIVEN, _given_of(record))


def unusual_of_args(payload: Sequence[Any]) -> tuple[tuple[str, ...], list[Any]]:
    """Return the same of the values of JobArgs, without the id."""
    return unusual(JobArgs, PAYLOAD, payload)


def insert_job(connection: BaseDatabaseWrapper, record: JobSnapshot, payload: Sequence[Any] | None) -> bool:
    """Store one job with its ``payload`` (values of JobArgs after the id); False: its key is taken, nothing is stored.

    The caller's transaction stays usable. On PostgreSQL row and arguments are one statement.
    """
    names, given = unusual_of_job(record)
    arg_names, given_args = (None, None) if payload is None else unusual_of_args(payload)
    one = _one_job(names, arg_names, connection.alias, _settings_of(connection))
    if not _insert(connection, one.statement, one.parameters(given, given_args), record):
        return False
    if one.args is not None and given_args is not None:
        with connection.cursor() as cursor:
            cursor.execute(f"{one.args.head} {one.args.values}", one.args.given.adapt([record.id, *given_args]))
    return True


@dataclass(frozen=True, slots=True)
class _OneJob:
    """The statement that stores a job, with its arguments where these are not the INSERT ``args`` after it."""

    statement: str
    job: Insert
    together: Insert | None = None
    args: Insert | None = None
    repeats_id: bool = False

    def parameters(self, job: Sequence[Any], args: Sequence[Any] | None) -> list[Any]:
        """Return the statement's parameters for values of the job, the id first, and of the arguments."""
        values = self.job.given.adapt_values(job)
        if self.together is not None and args is not None:
            arguments = self.together.given.adapt_values([job[0], *args])
            values += arguments if self.repeats_id else arguments[1:]
        return values


@lru_cache(maxsize=256)
def _one_job(
    names: tuple[str, ...], arg_names: tuple[str, ...] | None, alias: str, _settings: tuple[str, str]
) -> _OneJob:
    connection = connections[alias]
    job = insert_of(connection, Job, names)
    has_key = "key_digest" in names
    statement = f"{job.head} {job.values}"
    # Without a key there is no conflict, and a plain INSERT costs the server less.
    if has_key and connection.features.supports_update_conflicts_with_target:
        statement += f" ON CONFLICT ({connection.ops.quote_name('key_digest')}) DO NOTHING"
    if arg_names is None:
        return _OneJob(statement, job)
    args = insert_of(connection, JobArgs, ("job_id", *arg_names))
    if not writes_together(connection):
        return _OneJob(statement, job, args=args)
    if not has_key:
        return _OneJob(f"WITH stored AS ({statement}) {args.head} {args.values}", job, args, repeats_id=True)
    texts = ", ".join([*["%s::text"] * len(arg_names), *args.literals])
    return _OneJob(f"WITH stored AS ({statement} RETURNING id) {args.head} SELECT id, {texts} FROM stored", job, args)


def writes_together(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether ``insert_job`` needs no transaction around it."""
    return connection.vendor == "postgresql"


def _insert(connection: BaseDatabaseWrapper, statement: str, parameters: Sequence[Any], record: JobSnapshot) -> bool:
    # This flag is true exactly where ON CONFLICT (column) DO NOTHING exists.
    if record.key_digest is None or connection.features.supports_update_conflicts_with_target:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return bool(cursor.rowcount == 1)
    try:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute(statement, parameters)
    except IntegrityError as error:
        if is_duplicate_key(error):
            return False
        raise
    return True


def insert_jobs(connection: BaseDatabaseWrapper, stored: Sequence[tuple[JobSnapshot, Sequence[Any] | None]]) -> None:
    """Store many jobs whose keys are known to be free, with their arguments."""
    insert_many(connection, Job, _GIVEN, [_given_of(record) for record, _ in stored])
    arguments = [(record.id, *payload) for record, payload in stored if payload is not None]
    insert_many(connection, JobArgs, _ARGS, arguments)


def insert_many(
    connection: BaseDatabaseWrapper, model: type[models.Model], names: tuple[str, ...], rows: Sequence[Sequence[Any]]
) -> None:
    """Insert rows, values in the order of ``names``: many for the price of few round trips."""
    if not rows:
        return
    by_column = zip(names, zip(*rows, strict=True), _usual_of(model, names), strict=True)
    found = [(name, values) for name, values, usual in by_column if values.count(usual) != len(values)]
    insert = insert_of(connection, model, tuple(name for name, _ in found))
    adapted = [insert.given.adapt(row) for row in zip(*(values for _, values in found), strict=True)]
    with connection.cursor() as cursor:
        if len(rows) > 1 and connection.vendor == "postgresql":
            expressions, source, parameters = _unnested(insert.given, adapted)
            expressions = [*expressions, *insert.literals]
            cursor.execute(f"{insert.head} SELECT {', '.join(expressions)} FROM {source}", parameters)
        else:
            # MySQL's driver joins them into statements of many rows, and SQLite has no round trips.
            cursor.executemany(f"{insert.head} {insert.values}", adapted)


def _unnested(table: Columns, rows: Sequence[Sequence[Any]]) -> tuple[list[str], str, list[Any]]:
    """Return expressions, source and parameters: an array for each column whose values differ, else one value."""
    expressions: list[str] = []
    arrays: list[str] = []
    constants: list[Any] = []
    varying: list[tuple[str, list[Any]]] = []
    for name, kind, values in zip(table.quoted, table.types, zip(*rows, strict=True), strict=True):
        first = values[0]
        if arrays and values.count(first) == len(values):
            expressions.append(f"%s::{kind}")
            constants.append(first)
        else:
            expressions.append(f"given.{name}")
            arrays.append(f"%s::{kind}[]")
            varying.append((name, list(values)))
    source = f"unnest({', '.join(arrays)}) AS given ({', '.join(name for name, _ in varying)})"
    return expressions, source, [*constants, *(values for _, values in varying)]
