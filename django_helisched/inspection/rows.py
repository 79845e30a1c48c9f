"""Reading rows for people: always from the pinned database, and damaged rows too.

A row may hold what its column's type cannot read (text where SQLite should hold
a time, JSON that is none). It must not hide the other rows of its page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.db import DataError

from django_helisched import conf

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    M = TypeVar("M", bound=Model)

# What the converters of the four databases raise for a value they cannot read.
DAMAGE = (ValueError, TypeError, AttributeError, OverflowError, DataError)


_MARK = "_helisched_damage"  # on a salvaged instance, for damage_of alone


def alias() -> str:
    """Return the database that holds the rows: HELISCHED["DATABASE"]."""
    return conf.get_settings().database


def rows_of(model: type[M]) -> QuerySet[M]:
    """Return all rows of ``model`` in the pinned database."""
    return model._default_manager.using(alias())


def read_rows(rows: QuerySet[M]) -> list[M]:
    """Return the rows in order; a damaged one comes with what of it can be read.

    One query, and only where a row is damaged one more for each row and column.
    """
    try:
        return list(rows)
    except DAMAGE:
        keys = list(rows.values_list("pk", flat=True))
        found = [read_row(rows.model, key) for key in keys]
        return [row for row in found if row is not None]


def read_row(model: type[M], key: Any) -> M | None:
    """Return one row, or None; a damaged one has None in the columns that ``damage_of`` names."""
    try:
        return rows_of(model).filter(pk=key).first()
    except DAMAGE:
        return _salvaged(model, key)


def damage_of(row: Model) -> tuple[str, ...]:
    """Return the names of the columns that could not be read."""
    damaged: tuple[str, ...] = getattr(row, _MARK, ())
    return damaged


def _salvaged(model: type[M], key: Any) -> M | None:
    one = rows_of(model).filter(pk=key)
    values: dict[str, Any] = {}
    damaged = []
    for field in model._meta.concrete_fields:
        try:
            values[field.attname] = one.values_list(field.attname, flat=True).get()
        except model.DoesNotExist:  # type: ignore[attr-defined]  # every concrete model has one
            return None
        except DAMAGE:
            values[field.attname] = None
            damaged.append(field.name)
    row = model(**values)
    row._state.adding = False
    row._state.db = one.db
    setattr(row, _MARK, tuple(damaged))
    return row
