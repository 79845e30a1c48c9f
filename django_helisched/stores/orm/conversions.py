"""How values travel to and from a connection that keeps its times in UTC, as Django's connections do by default.

Django's own converters work for any time zone and any column; asked column by
column they cost more than the statement. These do the same for the few types of
our tables. ``None`` stands for a value that travels as it is.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID, SafeUUID

from django.db import models
from django.utils.duration import duration_microseconds

from django_helisched.jobs import payload
from django_helisched.models.fields import JsonTextField

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper

    Conversion = Callable[[Any], Any]

_decoder: Any = json.JSONDecoder()
_decode, _scan = _decoder.decode, _decoder.scan_once
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EMPTY: dict[str, type[list[Any]] | type[dict[str, Any]]] = {"[]": list, "{}": dict}
_EMPTY_TEXTS = {kind: text for text, kind in _EMPTY.items()}


def is_utc(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether times are written to this connection, and read from it, as UTC."""
    return connection.timezone is None or str(connection.timezone) == "UTC"


def writer(field: models.Field[Any, Any], connection: BaseDatabaseWrapper) -> Conversion | None:
    """Return what makes a parameter of a value that is not None."""
    if isinstance(field, models.DateTimeField):
        return _time_writer(connection)
    if isinstance(field, models.UUIDField):
        return None if connection.features.has_native_uuid_field else _hex
    if isinstance(field, models.DurationField):
        return None if connection.features.has_native_duration_field else duration_microseconds
    if isinstance(field, JsonTextField):
        return _json_text
    return None


def value_writer(field: models.Field[Any, Any], connection: BaseDatabaseWrapper) -> Conversion | None:
    """Return the same for a list of VALUES, where the server knows the type by the column.

    A text then does for a time and an id, and costs PostgreSQL's driver a third of them.
    """
    if connection.vendor == "postgresql" and isinstance(field, models.DateTimeField):
        return datetime.isoformat
    if connection.vendor == "postgresql" and isinstance(field, models.UUIDField):
        return _hex
    return writer(field, connection)


def reader(field: models.Field[Any, Any], connection: BaseDatabaseWrapper) -> Conversion | None:
    """Return what makes the value of a fetched one that is not None."""
    if isinstance(field, models.DateTimeField):
        return _time_reader(connection)
    if isinstance(field, models.UUIDField):
        return None if connection.vendor == "postgresql" else _uuid
    if isinstance(field, models.DurationField):
        return None if connection.features.has_native_duration_field else _duration
    if isinstance(field, models.BooleanField):
        return None if connection.vendor == "postgresql" else bool
    if isinstance(field, JsonTextField):
        return _json
    return None


def _time_writer(connection: BaseDatabaseWrapper) -> Conversion | None:
    if connection.vendor == "postgresql":
        return None
    return _naive_text if is_utc(connection) else connection.ops.adapt_datetimefield_value


def _time_reader(connection: BaseDatabaseWrapper) -> Conversion:
    if connection.vendor == "postgresql":
        return _counted
    return _aware if is_utc(connection) else lambda value: _moment(value).replace(tzinfo=connection.timezone)


def _naive_text(value: datetime) -> str:
    # A value of another zone would lose more than its offset's letters, and be taken for the one an hour before it
    # where clocks are put back: the two are equal.
    return _utc_text(value if value.tzinfo is UTC else value.astimezone(UTC))


@lru_cache(maxsize=256)  # the jobs of a batch share most instants
def _utc_text(value: datetime) -> str:
    return str(value)[:-6]


@lru_cache(maxsize=256)
def _counted(value: datetime | int) -> datetime:
    # Milliseconds, where a statement asked for them: psycopg and Django read a time in Python.
    return _EPOCH + timedelta(milliseconds=value) if isinstance(value, int) else value


@lru_cache(maxsize=256)
def _aware(value: datetime | str) -> datetime:
    return datetime.fromisoformat(f"{value}+00:00") if isinstance(value, str) else value.replace(tzinfo=UTC)


def _moment(value: datetime | str) -> datetime:
    # SQLite knows the type of a column, not of an expression.
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _hex(value: UUID) -> str:
    return value.hex


def _uuid(text: str) -> UUID:
    # MariaDB's own type comes with hyphens; without them int() is twice as fast as UUID's own reading.
    return _of_number(int(text, 16)) if len(text) == 32 else UUID(text)


def _of_number(number: int) -> UUID:
    # What the constructor does, without asking which of its seven arguments was given: half the price.
    made = object.__new__(UUID)
    object.__setattr__(made, "int", number)
    object.__setattr__(made, "is_safe", SafeUUID.unknown)
    return made


def _duration(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


def _json_text(value: Any) -> str:
    if not value and type(value) in _EMPTY_TEXTS:
        return _EMPTY_TEXTS[type(value)]
    return payload.dumps(value)


def _json(text: str) -> Any:
    empty = _EMPTY.get(text)
    if empty is not None:
        return empty()
    # As we write it there is nothing around a value, which the decoder would look for by two regular expressions.
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        return _decode(text)
    return value if end == len(text) else _decode(text)
