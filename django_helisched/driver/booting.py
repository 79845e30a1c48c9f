"""What a driver makes sure of before its first pass."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.apps import apps
from django.db import Error, connections

from django_helisched.stores.orm.migrated import not_migrated

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def migrated(alias: str) -> Iterator[None]:
    """Turn a database error inside the block into NotMigrated where tables of the app are missing."""
    try:
        yield
    except Error as error:
        missing = missing_tables(alias)
        if not missing:
            raise
        raise not_migrated(alias, missing[0]) from error


def missing_tables(alias: str) -> list[str]:
    """Return the app's tables that the database does not have; none where it does not answer."""
    wanted = [model._meta.db_table for model in apps.get_app_config("helisched").get_models()]
    try:
        present = set(connections[alias].introspection.table_names())
    except Error:
        return []
    return [table for table in wanted if table not in present]
