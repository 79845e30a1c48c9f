"""The BEGIN of a transaction and its first statement, sent together: one round trip less for a short job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper

_IDLE = 0  # of libpq: no transaction is open


def can_begin_with(connection: BaseDatabaseWrapper, sql: Any, cursor: Any) -> bool:
    """Tell whether psycopg 3 is about to send a plain BEGIN by itself, and the statement as one text.

    ``cursor`` is the driver's own. One that binds on the server, or has a name there, takes one statement only.
    """
    wrapper: Any = connection
    raw, database = wrapper.connection, wrapper.Database
    return (
        isinstance(sql, str)
        and hasattr(raw, "pgconn")
        and isinstance(cursor, database.ClientCursor)
        and getattr(raw, "_autocommit", None) is False
        and raw.pgconn.transaction_status == _IDLE
        and not raw.pgconn.pipeline_status
        and raw.isolation_level is raw.read_only is raw.deferrable is None
        and not connection.queries_logged
    )


def begin_with(
    connection: BaseDatabaseWrapper, execute: Callable[..., Any], sql: str, params: Any, context: dict[str, Any]
) -> Any:
    """Begin a transaction with its first statement, and return what an execute wrapper does."""
    raw: Any = connection.connection
    # So that psycopg sends none of its own; if it ever does all the same, the server says that ours is one too many.
    raw._autocommit = True  # noqa: SLF001  # the public one cannot be set back in a transaction
    try:
        done = execute(f"BEGIN; {sql}", params, False, context)  # noqa: FBT003  # Django's order
    finally:
        raw._autocommit = False  # noqa: SLF001
    # From the result of BEGIN to that of the statement.
    context["cursor"].cursor.nextset()
    return done
