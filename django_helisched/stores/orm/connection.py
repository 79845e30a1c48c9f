"""What differs between databases about locks, waits and errors."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import Error, OperationalError, connections, transaction
from django.db.transaction import TransactionManagementError

from django_helisched.exceptions import Busy
from django_helisched.stores.orm.first_statement import begin_with, can_begin_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from django.db.backends.base.base import BaseDatabaseWrapper

R = TypeVar("R")

PATIENCE = 2  # seconds an operator's verb waits for a lock: a person watches

SQLITE_TIMEOUT = 20  # seconds a connection of the driver waits for SQLite's single writer

# Pages of SQLite's write-ahead log after which a commit also copies them into the database and waits for the disk: with
# its own 1,000 every 130th job did. A log of 16 MB costs a reader nothing.
_CHECKPOINT_AFTER = 4000

_CONFLICT_STATES = {"40001", "40P01"}  # serialization_failure, deadlock_detected
_CONFLICT_CODES = {1213}  # ER_LOCK_DEADLOCK
_FUNCTION_STATES = {"42883", "42501"}  # undefined_function, insufficient_privilege
_LOCK_STATES = {"55P03"}  # lock_not_available
_LOCK_CODES = {1205, 3572}  # ER_LOCK_WAIT_TIMEOUT, ER_LOCK_NOWAIT


def is_transient(error: BaseException) -> bool:
    """Tell whether the same work may succeed if done again.

    After a deadlock, a serialization failure, a lock that was not let go, and where a function of ours was taken away.
    """
    if isinstance(error, TransactionManagementError) and error.__cause__ is not None:
        error = error.__cause__  # the next query after the one that failed
    return isinstance(error, Error) and (
        is_conflict(error) or _code(error) == 1205 or is_locked_file(error) or is_missing_function(error)
    )


def is_conflict(error: BaseException) -> bool:
    """Tell whether two transactions got into each other's way, and the database has undone this one."""
    return _sqlstate(error) in _CONFLICT_STATES or _code(error) in _CONFLICT_CODES


def is_lock_timeout(error: BaseException) -> bool:
    """Tell whether a lock was waited for in vain."""
    return _sqlstate(error) in _LOCK_STATES or _code(error) in _LOCK_CODES or is_locked_file(error)


def is_duplicate_key(error: BaseException) -> bool:
    """Tell whether a unique constraint refused the row."""
    sqlite_name = getattr(error.__cause__, "sqlite_errorname", "")
    return (
        _sqlstate(error) == "23505"
        or _code(error) == 1062
        or sqlite_name in {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"}
    )


def is_missing_table(error: BaseException) -> bool:
    """Tell whether the statement named a table that does not exist."""
    return _sqlstate(error) == "42P01" or _code(error) == 1146 or "no such table: helisched_" in str(error)


def is_missing_function(error: BaseException) -> bool:
    """Tell whether the function of the migrations is not there any more, or may not be called any more."""
    return _sqlstate(error) in _FUNCTION_STATES and "helisched_end" in str(error)


def is_own_wrapper(wrapper: Callable[..., Any]) -> bool:
    """Tell whether an execute wrapper is that of a WholeTransaction."""
    return getattr(wrapper, "__func__", None) is WholeTransaction._mark  # noqa: SLF001  # of this module


def _sqlstate(error: BaseException) -> str:
    return getattr(error.__cause__, "sqlstate", None) or ""


def _code(error: BaseException) -> int:
    code = error.args[0] if error.args else 0
    return code if isinstance(code, int) else 0


def is_locked_file(error: BaseException) -> bool:
    """Tell whether SQLite's single writer was waited for in vain."""
    return isinstance(error, OperationalError) and "is locked" in str(error)


def once_more(alias: str, work: Callable[[], R]) -> R:
    """Return ``work()``, which makes a transaction of its own; do all of it once more after a conflict.

    Inside a caller's transaction the conflict is the caller's: the database has undone more than this work.
    """
    try:
        return work()
    except Error as error:
        connection = connections[alias]
        is_ours = not connection.in_atomic_block and connection.get_autocommit()
        if not is_ours or not is_conflict(error):
            raise
    return work()


class WholeTransaction:
    """A block in a transaction in which nothing works any more after a conflict, whatever the block makes of the error.

    MySQL undoes everything on a deadlock and goes on, in a transaction that nobody began: a body that caught
    the error would commit its second half without its first.
    """

    def __init__(self, alias: str) -> None:
        self._connection: Any = connections[alias]
        self._atomic: AbstractContextManager[None] = transaction.atomic(using=alias)
        # SQLite knows no conflicts: its single writer waits, or is told at once that it cannot write.
        self._marks = self._connection.vendor != "sqlite"
        self._has_asked = self._connection.vendor != "postgresql"

    def __enter__(self) -> None:
        self._atomic.__enter__()
        if self._marks:
            self._connection.execute_wrappers.append(self._mark)

    def __exit__(self, *raised: Any) -> None:
        if self._marks:
            self._connection.execute_wrappers.remove(self._mark)
        if raised[0] is None and self._connection.needs_rollback:
            self._fail()
        self._atomic.__exit__(*raised)

    def _fail(self) -> None:
        """Undo it all and raise what is the matter; atomic() by itself would say nothing."""
        try:
            self._connection.validate_no_broken_transaction()
        except TransactionManagementError as error:
            self._atomic.__exit__(type(error), error, error.__traceback__)
            raise

    def _mark(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
        try:
            if self._has_asked:
                return execute(sql, params, many, context)
            self._has_asked = True
            return self._ask_first(execute, sql, params, many, context)
        except Error as error:
            if is_conflict(error):
                self._connection.needs_rollback, self._connection.rollback_exc = True, error
            raise

    def _ask_first(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
        is_alone = not many and self._connection.execute_wrappers == [self._mark]
        if is_alone and can_begin_with(self._connection, sql, context["cursor"].cursor):
            return begin_with(self._connection, execute, sql, params, context)
        return execute(sql, params, many, context)


@contextmanager
def operator_transaction(alias: str) -> Iterator[None]:
    """Open a transaction (a savepoint inside the caller's) that waits PATIENCE seconds for locks, then raises Busy."""
    connection = connections[alias]
    # SQLite waits when the transaction begins. On a server the setting must not outlive the transaction: behind a
    # pooler the next one of this connection may be another's.
    within = connection.features.has_select_for_update
    before, after = (nullcontext(), _patient(connection)) if within else (_patient(connection), nullcontext())
    try:
        with before, transaction.atomic(using=alias), after:
            yield
    except OperationalError as error:
        if is_lock_timeout(error):
            raise Busy(
                f"The row is in use by another transaction and stayed so for {PATIENCE} s. Nothing changed; try again."
            ) from error
        raise


@contextmanager
def _patient(connection: BaseDatabaseWrapper) -> Iterator[None]:
    before = _lock_wait(connection)
    _set_lock_wait(connection, f"{PATIENCE}s" if connection.vendor == "postgresql" else PATIENCE)
    try:
        yield
    finally:
        # PostgreSQL refuses after an error, and takes the setting back with the transaction.
        with suppress(Error):
            _set_lock_wait(connection, before)


_ASK_LOCK_WAIT = {
    "postgresql": "SELECT current_setting('lock_timeout')",
    "mysql": "SELECT @@SESSION.innodb_lock_wait_timeout",
    "sqlite": "PRAGMA busy_timeout",
}


def _lock_wait(connection: BaseDatabaseWrapper) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(_ASK_LOCK_WAIT[connection.vendor])
        return cursor.fetchone()[0]


def _set_lock_wait(connection: BaseDatabaseWrapper, wait: Any) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [wait])
        elif connection.vendor == "mysql":
            cursor.execute("SET SESSION innodb_lock_wait_timeout = %s", [wait])
        else:  # a PRAGMA takes no parameters; SQLite counts milliseconds
            milliseconds = wait * 1000 if wait == PATIENCE else wait
            cursor.execute(f"PRAGMA busy_timeout = {int(milliseconds)}")


def prepare_process(alias: str) -> None:
    """Set up this process's connections before the first query; only SQLite needs it.

    Every connection opened from now on uses write-ahead logging and takes the
    write lock when a transaction begins, so that a read never has to be
    upgraded, which no timeout would wait for.
    """
    connection = connections[alias]
    if connection.vendor != "sqlite":
        return
    options = connection.settings_dict.setdefault("OPTIONS", {})
    options["transaction_mode"] = "IMMEDIATE"
    options["timeout"] = max(SQLITE_TIMEOUT, options.get("timeout", 0))
    given = options.get("init_command", "")
    if "wal_autocheckpoint" not in given.lower():
        given = f"PRAGMA wal_autocheckpoint={_CHECKPOINT_AFTER}; {given}"
    if "journal_mode" not in given.lower():
        given = f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {given}"
    options["init_command"] = given
    connections.settings[alias]["OPTIONS"] = options
    if connection.connection is not None and not connection.in_atomic_block:
        connection.close()
