"""Statements on the connection's own cursor, past Django's: of a short job's time that one takes the larger part."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper


def changed(connection: BaseDatabaseWrapper, statement: str, params: Sequence[Any]) -> int:
    """Execute a statement inside an open transaction and return how many rows it changed.

    In ``statement`` a percent sign is part of a placeholder. Django's cursor is
    passed by on SQLite, unless somebody watches it. Raises what that one raises.
    """
    raw = connection.connection
    # By its name: not every Python that talks to a server has the module.
    if type(raw).__module__ == "sqlite3" and _is_unwatched(connection):
        with connection.wrap_database_errors:
            return int(raw.execute(_with_qmarks(statement), params).rowcount)
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return int(cursor.rowcount)


def fetched(connection: BaseDatabaseWrapper, statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Execute a statement that is a transaction of its own, or part of an open one, and return its rows.

    Django's cursor is passed by with psycopg 3 outside of transactions, unless
    somebody watches it: after a rest it takes longer to make than the answer to read.
    """
    raw: Any = connection.connection
    if hasattr(raw, "pgconn") and connection.autocommit and not _is_seen(connection):
        with connection.wrap_database_errors:
            rows: list[tuple[Any, ...]] = raw.execute(statement, params).fetchall()
            return rows
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return list(cursor.fetchall())


def _is_seen(connection: BaseDatabaseWrapper) -> bool:
    return bool(connection.in_atomic_block or connection.execute_wrappers or connection.queries_logged)


def _is_unwatched(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether nobody sees the difference; what Django's cursor refuses is left to it, too."""
    return (
        connection.in_atomic_block
        and not connection.needs_rollback
        and not connection.execute_wrappers
        and not connection.queries_logged
    )


@lru_cache(maxsize=64)
def _with_qmarks(statement: str) -> str:
    return statement.replace("%s", "?")
