"""Whether anything at all is left to do for a sweep: one statement, where an idle scheduler would send six."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.jobs.job import Hold, State
from django_helisched.models import Job, Limit, Queue
from django_helisched.stores.orm.limit_lines import LIMITED
from django_helisched.stores.orm.rows import columns

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.backends.base.base import BaseDatabaseWrapper

_PENDING = f"state = '{State.PENDING.value}'"

# Each in the order of the index that answers it: PostgreSQL takes a row that is there for one that it will meet soon,
# and reads the table.
_LOOKS = (
    ("helisched_job_state", f"state = '{State.IN_PROGRESS.value}' AND lease_expires_at < %s", "id"),
    ("helisched_job_expiry", f"{_PENDING} AND expires_at < %s", "expires_at"),
    ("helisched_job_hot", f"{_PENDING} AND hold = '{Hold.UNKNOWN_FUNCTION.value}'", "queue"),
    ("helisched_job_limit", f"{_PENDING} AND hold = '' AND {LIMITED}", "limit_key"),
)


def any_left(connection: BaseDatabaseWrapper, now: datetime) -> bool:
    """Return what JobStore.has_chores tells."""
    job = columns(Job, ("expires_at",), connection)
    is_mysql = connection.vendor == "mysql"
    asked = [
        f"(SELECT 1 FROM {job.table} {f'FORCE INDEX ({index})' if is_mysql else ''} WHERE {condition} "
        f"ORDER BY {column} LIMIT 1)"
        for index, condition, column in _LOOKS
    ]
    name = connection.ops.quote_name
    asked.append(f"(SELECT 1 FROM {name(Limit._meta.db_table)} LIMIT 1)")
    asked.append(f"(SELECT 1 FROM {name(Queue._meta.db_table)} WHERE paused_at IS NOT NULL LIMIT 1)")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COALESCE({', '.join(asked)})", job.adapt([now]) * 2)
        return bool(cursor.fetchone()[0])
