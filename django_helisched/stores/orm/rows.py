"""How the columns of a model travel to and from one connection.

The hot statements are hand-written, since an ORM statement costs several times
as much.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connections, models

from django_helisched.jobs.job import ClaimedJob, JobSnapshot
from django_helisched.stores.orm import conversions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.models import Job
    from django_helisched.stores.orm.conversions import Conversion

SNAPSHOT = tuple(item.name for item in fields(JobSnapshot))
PAYLOAD = ("args", "kwargs", "context", "options", "meta")
CLAIM = tuple(item.name for item in fields(ClaimedJob) if item.name not in PAYLOAD)


class Columns:
    """Some columns of one model on one kind of connection."""

    def __init__(self, model: type[models.Model], names: Sequence[str], connection: BaseDatabaseWrapper) -> None:
        by_name = {field.attname: field for field in model._meta.concrete_fields}
        found = [_target(by_name[name]) for name in names]
        self.names = tuple(names)
        self.table = connection.ops.quote_name(model._meta.db_table)
        self.quoted = [connection.ops.quote_name(str(by_name[name].column)) for name in names]
        self.listed = ", ".join(f"{self.table}.{column}" for column in self.quoted)
        self.quick = ", ".join(
            _quick(field, self.table, column, connection) for field, column in zip(found, self.quoted, strict=True)
        )
        self.placeholders = f"({', '.join(['%s'] * len(names))})"
        self.types = [_type(field, connection) for field in found]
        self._writers = [conversions.writer(field, connection) for field in found]
        self._places = [(place, writer) for place, writer in enumerate(self._writers) if writer is not None]
        value_writers = [conversions.value_writer(field, connection) for field in found]
        self._value_places = [(place, writer) for place, writer in enumerate(value_writers) if writer is not None]
        readers = [conversions.reader(field, connection) for field in found]
        self._readers = [(place, reader) for place, reader in enumerate(readers) if reader is not None]

    @property
    def insert(self) -> str:
        """Return the statement's head: ``INSERT INTO table (columns) VALUES``."""
        return f"INSERT INTO {self.table} ({', '.join(self.quoted)}) VALUES "

    def adapt(self, values: Iterable[Any]) -> list[Any]:
        """Return the parameters for a row's values, in the order of the names."""
        return _converted(values, self._places)

    def adapt_values(self, values: Iterable[Any]) -> list[Any]:
        """Return the same for a list of VALUES, whose types the server knows."""
        return _converted(values, self._value_places)

    def read(self, row: Sequence[Any]) -> dict[str, Any]:
        """Return a fetched row as values by name."""
        return dict(zip(self.names, _converted(row, self._readers), strict=True))

    def converted(self, row: list[Any]) -> list[Any]:
        """Return the values of a fetched row, which may go on behind these columns; the list itself is changed."""
        for place, read in self._readers:
            value = row[place]
            if value is not None:
                row[place] = read(value)
        return row

    def writer(self, name: str) -> Conversion:
        """Return what makes a parameter of a value of one column."""
        return self._writers[self.names.index(name)] or _same


def _quick(field: models.Field[Any, Any], table: str, column: str, connection: BaseDatabaseWrapper) -> str:
    """Return what to select for a column in the form that is read fastest: a time of PostgreSQL in milliseconds."""
    if connection.vendor == "postgresql" and isinstance(field, models.DateTimeField):
        return f"{milliseconds(f'{table}.{column}')} AS {column}"
    return f"{table}.{column}"


def milliseconds(time: str) -> str:
    """Return what PostgreSQL tells of a time as a number, which costs a quarter of reading a time in Python."""
    return f"(extract(epoch FROM {time}) * 1000)::bigint"


def _type(field: models.Field[Any, Any], connection: BaseDatabaseWrapper) -> str:
    # An explicit cast to varchar(n) cuts a longer text off, where an insert refuses it.
    return "text" if isinstance(field, models.CharField | models.TextField) else str(field.db_type(connection))


def _converted(values: Iterable[Any], places: Iterable[tuple[int, Conversion]]) -> list[Any]:
    converted = list(values)
    for place, convert in places:
        value = converted[place]
        if value is not None:
            converted[place] = convert(value)
    return converted


def _same(value: Any) -> Any:
    return value


def _target(field: models.Field[Any, Any]) -> models.Field[Any, Any]:
    # A foreign key travels as what it points to.
    return field.target_field if isinstance(field, models.ForeignKey) else field


def job_snapshot(job: Job) -> JobSnapshot:
    """Return the record of a model instance."""
    return JobSnapshot(**{name: getattr(job, name) for name in SNAPSHOT})


@lru_cache(maxsize=64)
def _columns(model: type[models.Model], names: tuple[str, ...], alias: str, _settings: tuple[str, str]) -> Columns:
    return Columns(model, names, connections[alias])


def columns(model: type[models.Model], names: tuple[str, ...], connection: BaseDatabaseWrapper) -> Columns:
    """Return the (shared) Columns of a model for the alias of ``connection``."""
    return _columns(model, names, connection.alias, (connection.vendor, str(connection.timezone)))
