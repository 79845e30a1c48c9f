"""The last statement of a transaction and its COMMIT, sent together: one round trip less for a short job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.stores.orm.connection import is_own_wrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

_BEFORE = "helisched_end"  # the savepoint

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


def commit_with(
    connection: BaseDatabaseWrapper, statement: str, params: Sequence[Any], *, must_exist: tuple[str, str]
) -> bool:
    """Execute a statement and commit; return False where it found no value for a column: the transaction is as before.

    ``must_exist`` names a table and its column, which is NOT NULL: after the error the
    server carries out nothing that was sent with the statement. Raises what Django's
    cursor raises, and what a commit does.
    """
    wrapper: Any = connection
    raw, database = wrapper.connection, wrapper.Database
    with connection.wrap_database_errors:
        try:
            # By name: a cursor that binds on the server sends one statement only.
            database.ClientCursor(raw).execute(f"SAVEPOINT {_BEFORE}; {statement}; COMMIT", params)
        except database.errors.NotNullViolation as error:
            # Triggers of the project's own may find a NULL, too.
            if (error.diag.table_name, error.diag.column_name) != must_exist:
                raise
            # The caller asks why, and what the transaction itself has done is part of the answer.
            raw.execute(f"ROLLBACK TO SAVEPOINT {_BEFORE}")
            return False
    return True
