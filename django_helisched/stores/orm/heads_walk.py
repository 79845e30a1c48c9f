"""The walk from head to head, where a recursion skips through an index: one look into it for each head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.models import Job, Queue

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.jobs.job import Hold

# A look goes down the priorities of a queue, and on to the next queue where there is none left.
_FIRST = "ORDER BY job.queue, job.priority DESC, job.next_run_at LIMIT 1"
_LOWER = (
    "AND job.queue = head.queue AND job.priority < head.priority ORDER BY job.priority DESC, job.next_run_at LIMIT 1"
)
_NEXT = f"AND job.queue > head.queue {_FIRST}"


TIMES = 3  # how often the statement takes the instant before which a job must not have expired


def statement(connection: BaseDatabaseWrapper, hold: Hold) -> str:
    """Return the SQL that lists queue, priority, when the oldest is due, and the queue's pause, of every head.

    One recursion and not two nested ones: those make PostgreSQL expect so many rows that it
    compiles the statement each time.
    """
    walk = _walk_by_row if connection.vendor == "postgresql" else _walk_by_rowid
    table = connection.ops.quote_name(Job._meta.db_table)
    # The literals let the planner use the partial index.
    pending = (
        f"FROM {table} job WHERE job.state = 'pending' AND job.hold = '{hold.value}' "
        "AND (job.expires_at IS NULL OR job.expires_at >= %s)"
    )
    paused = connection.ops.quote_name(Queue._meta.db_table)
    return f"""
        {walk(table, pending)}
        SELECT head.queue, head.priority, head.due, paused.paused_at, paused.until FROM head
        LEFT JOIN {paused} paused ON paused.name = head.queue AND paused.paused_at IS NOT NULL
        """


def _walk_by_row(_: str, pending: str) -> str:
    look = f"SELECT job.queue, job.priority, job.next_run_at {pending}"
    return f"""
        WITH RECURSIVE head (queue, priority, due) AS (
            ({look} {_FIRST})
            UNION ALL
            SELECT
                COALESCE(lower.queue, next.queue),
                COALESCE(lower.priority, next.priority),
                COALESCE(lower.next_run_at, next.next_run_at)
            FROM head
            LEFT JOIN LATERAL ({look} {_LOWER}) lower ON TRUE
            LEFT JOIN LATERAL ({look} AND lower.queue IS NULL {_NEXT}) next ON TRUE
            WHERE lower.queue IS NOT NULL OR next.queue IS NOT NULL
        )"""


def _walk_by_rowid(table: str, pending: str) -> str:
    # A subquery of SQLite's gives one value: which row it is. Where it could move a condition on the rows in
    # here, it would read the whole table for a filter; a limit keeps conditions out.
    look = f"SELECT job.rowid {pending}"
    return f"""
        WITH RECURSIVE place (at) AS (
            SELECT ({look} {_FIRST})
            UNION ALL
            SELECT COALESCE(({look} {_LOWER}), ({look} {_NEXT}))
            FROM place JOIN {table} head ON head.rowid = place.at
        ), head (queue, priority, due) AS (
            SELECT job.queue, job.priority, job.next_run_at FROM place JOIN {table} job ON job.rowid = place.at LIMIT -1
        )"""
