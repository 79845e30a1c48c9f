"""Column types and indexes that mean the same on every database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models

from django_helisched.jobs import payload

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.backends.ddl_references import Statement


class KeyField(models.CharField):  # type: ignore[type-arg]  # not subscriptable at run time
    """Text that is compared byte by byte: paths, queues, spaces, names, keys.

    MySQL and MariaDB compare text without regard to case and accents by
    default; a binary collation makes them agree with the other databases. On
    PostgreSQL the type is ``text``, since measuring each literal of each statement
    costs the server more than a row; whoever writes has measured, as for SQLite.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """Return the column's type."""
        return "text" if connection.vendor == "postgresql" else super().db_type(connection)

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        """Return the column's parameters, with the binary collation where one is needed."""
        parameters: dict[str, Any] = dict(super().db_parameters(connection))
        if connection.vendor == "mysql":  # no feature flag says which collation compares bytes
            parameters["collation"] = "utf8mb4_bin"
        return parameters

    def deconstruct(self) -> Any:
        """Name the field by its public path, so that migrations stay readable."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django_helisched.models.fields.KeyField", args, kwargs


class JsonTextField(models.TextField):  # type: ignore[type-arg]  # not subscriptable at run time
    """A JSON value kept as text, so that it comes back exactly as it went in.

    PostgreSQL's jsonb and MySQL's JSON reorder keys and change numbers; see
    docs/decisions/0002-json-is-stored-as-text.md.
    """

    def from_db_value(self, value: str | None, *_: object) -> Any:
        """Return the parsed value, or None for an empty column."""
        return None if value is None else json.loads(value)

    def get_prep_value(self, value: Any) -> str | None:
        """Return the JSON text to store."""
        return None if value is None else payload.dumps(value)

    def to_python(self, value: Any) -> Any:
        """Return the value itself: forms and fixtures hand over Python values."""
        return value

    def value_to_string(self, obj: models.Model) -> str:
        """Return the value's text for serializers."""
        return payload.dumps(self.value_from_object(obj))

    def deconstruct(self) -> Any:
        """Name the field by its public path, so that migrations stay readable."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django_helisched.models.fields.JsonTextField", args, kwargs


class PartialIndex(models.Index):
    """An index over the rows that match ``where``, and over all rows where the database has no such thing.

    Django leaves a conditional index out on MySQL, with a warning; the hot
    queries need it there too. A column that ``where`` fixes to one value is no part
    of the partial index: PostgreSQL drops the condition on it as known, so that
    an index led by it would be read from its first row on.
    """

    def __init__(self, *expressions: Any, where: models.Q, **options: Any) -> None:
        super().__init__(*expressions, **options)
        self.where = where

    def create_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor, using: str = "", **kwargs: Any
    ) -> Statement:
        """Return the statement that creates the index, partial where that exists."""
        if not schema_editor.connection.features.supports_partial_indexes:
            index = models.Index(*self.expressions, fields=self.fields, name=self.name)
            return index.create_sql(model, schema_editor, using, **kwargs)
        fixed = {condition[0] for condition in self.where.children if isinstance(condition, tuple)}
        fields = [name for name in self.fields if name not in fixed]
        index = models.Index(*self.expressions, fields=fields, name=self.name, condition=self.where)
        return index.create_sql(model, schema_editor, using, **kwargs)

    def deconstruct(self) -> Any:
        """Return what a migration needs to make the index again."""
        _, expressions, options = super().deconstruct()
        return "django_helisched.models.fields.PartialIndex", expressions, {**options, "where": self.where}

    def __eq__(self, other: object) -> bool:
        """Compare the definition, ``where`` included."""
        return isinstance(other, PartialIndex) and self.deconstruct() == other.deconstruct()

    __hash__ = None  # type: ignore[assignment]  # mutable, as models.Index is
