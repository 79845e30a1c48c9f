"""PostgreSQL: words travel as notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connections

from django_helisched.models import Job

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

# A channel is named by the table's own number: schemas of one database do not hear each other, and whoever
# reads the same table listens to the same channel, whatever its search path.
_NAME = "'helisched_' || %s::regclass::oid"

# A notification takes part in a commit, which would wait for the disk a second time. It has nothing to lose.
_NOTIFY = f"SELECT set_config('synchronous_commit', 'off', true), pg_notify({_NAME}, %s)"


class Notifications:
    """NOTIFY, on the caller's own connection."""

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def send(self, text: str) -> None:
        """Notify; inside a transaction, which might never commit and whose commit it would slow down, do nothing."""
        connection = connections[self._alias]
        if connection.in_atomic_block or not connection.get_autocommit():
            return
        with connection.cursor() as cursor:
            cursor.execute(_NOTIFY, [_table(connection), text])


def name_of(connection: BaseDatabaseWrapper) -> str:
    """Return the channel's name. Raises where the table is missing."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_NAME}", [_table(connection)])
        return str(cursor.fetchone()[0])


def _table(connection: BaseDatabaseWrapper) -> str:
    return connection.ops.quote_name(Job._meta.db_table)
