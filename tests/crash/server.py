"""What a test does to the server that a scheduler is connected to."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import OperationalError, connection

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_SUCH_THREAD = 1094  # what MariaDB says of a connection that is gone
PLAIN_USER = "helisched_plain"  # on MariaDB, whose root may write to a read-only server

_OTHERS = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}
_END = {"postgresql": "SELECT pg_terminate_backend(%s)", "mysql": "KILL %s"}

# What makes the server close a connection that was idle for so many seconds.
IDLE_TIMEOUT = {
    "postgresql": {"options": "-c idle_session_timeout=1500"},
    "mysql": {"init_command": "SET SESSION wait_timeout = 2"},
}


def others() -> list[int]:
    """Return the ids of all connections to this database but the test's own, oldest first."""
    return sorted(number for (number,) in _asked(_OTHERS[connection.vendor]))


def end(number: int) -> None:
    """End one connection from the server's side, if its client has not ended it this instant."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(_END[connection.vendor], [number])
        except OperationalError as error:
            if error.args[0] != NO_SUCH_THREAD:
                raise


@contextmanager
def read_only(env: dict[str, str]) -> Iterator[None]:
    """Take no writes from the schedulers of ``env`` inside the block; the test itself may write."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    if connection.vendor == "postgresql":
        begin, undo = (
            f"ALTER DATABASE {name} SET default_transaction_read_only = on",
            (f"ALTER DATABASE {name} RESET default_transaction_read_only"),
        )
    else:
        begin, undo = "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0"
    _do(begin)
    try:
        # The setting is a new connection's; on MariaDB the old ones are only made to come again.
        for number in others():
            end(number)
        yield
    finally:
        _do(undo)


@contextmanager
def plain_user(env: dict[str, str]) -> Iterator[None]:
    """Let the schedulers of ``env`` be somebody whom a read-only server refuses."""
    if connection.vendor == "postgresql":  # nobody is exempt there
        yield
        return
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    _do(f"CREATE OR REPLACE USER {PLAIN_USER}@'%', {PLAIN_USER}@localhost")
    _do(f"GRANT ALL PRIVILEGES ON {name}.* TO {PLAIN_USER}@'%', {PLAIN_USER}@localhost")
    env |= {"HELISCHED_TEST_MARIADB_USER": PLAIN_USER, "HELISCHED_TEST_MARIADB_PASSWORD": ""}
    try:
        yield
    finally:
        _do(f"DROP USER {PLAIN_USER}@'%', {PLAIN_USER}@localhost")


def _asked(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def _do(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
