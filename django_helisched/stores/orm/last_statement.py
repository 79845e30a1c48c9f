"""The last statement of a transaction and its COMMIT, sent together: one round trip less for a short job.

They go by libpq's own call, past psycopg's cursor: that one costs a third as much as the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.stores.orm.connection import is_own_wrapper

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_IN_TRANSACTION = 2  # of libpq; a transaction in which nothing was asked has not begun there


def can_commit_with_last(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether the open transaction can be committed together with its last statement, and nobody sees it.

    With psycopg 3 in the outermost atomic() block, which is Django's own word for a
    COMMIT that it is about to send. That one then finds nothing to commit, and
    the on_commit hooks run after it as ever.
    """
    raw: Any = connection.connection
    return (
        hasattr(raw, "pgconn")
        and len(connection.atomic_blocks) == 1
        and connection.commit_on_exit
        and not connection.needs_rollback
        and not connection.queries_logged
        and all(map(is_own_wrapper, connection.execute_wrappers))
        and raw.pgconn.transaction_status == _IN_TRANSACTION
        and not raw.pgconn.pipeline_status
    )


def commit_with(connection: BaseDatabaseWrapper, statement: str, *, refusal: str) -> str | None:
    """Execute a statement and commit.

    Return what it says where it raises the SQLSTATE ``refusal``, after which nothing can
    be done but to roll back, and else None. Raises what Django's cursor raises, and what a commit does.
    """
    wrapper: Any = connection
    raw, database = wrapper.connection, wrapper.Database
    with connection.wrap_database_errors:
        # The server carries out nothing of what follows an error.
        result = raw.pgconn.exec_(f"{statement}; COMMIT".encode(raw.info.encoding))
        if result.status == database.pq.ExecStatus.COMMAND_OK:
            return None
        if raw.pgconn.status == database.pq.ConnStatus.BAD:
            raise database.OperationalError(result.error_message.decode(errors="replace").strip())
        error = database.errors.error_from_result(result, raw.info.encoding)
        if error.diag.sqlstate != refusal:
            raise error
        connection.needs_rollback = True
        message: str = error.diag.message_primary
        return message


def quoted(connection: BaseDatabaseWrapper, text: str | None) -> str:
    """Return a text as a literal of SQL, whatever is in it. Raises DataError for what PostgreSQL cannot store."""
    if text is None:
        return "NULL"
    wrapper: Any = connection
    raw, database = wrapper.connection, wrapper.Database
    if "\0" in text:
        with connection.wrap_database_errors:
            raise database.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    encoding = raw.info.encoding
    literal: str = database.pq.Escaping(raw.pgconn).escape_literal(text.encode(encoding)).decode(encoding)
    return literal
