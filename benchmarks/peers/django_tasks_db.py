"""django-tasks-db: one thread per worker process, polling every second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.peers.base import TasksPeer, manage

if TYPE_CHECKING:
    from collections.abc import Sequence


class DjangoTasksDb(TasksPeer):
    name = "django-tasks-db"
    requirements = ("django-tasks-db==0.13.0",)
    apps = ("django_tasks_db",)
    backend = "django_tasks_db.DatabaseBackend"
    note = "one job at a time per process; a killed worker's job stays running"
    has_bulk = False
    leaves_out = frozenset({"noop-8", "write-16", "pause-4"})
    unfinished_sql = "SELECT count(*) FROM django_tasks_database_dbtaskresult WHERE status IN ('READY', 'RUNNING')"
    table = "django_tasks_database_dbtaskresult"
    finished = {"status": "'SUCCESSFUL'", "finished_at": "enqueued_at"}
    future = {"run_after": "{in_a_year}"}

    def worker(self, seats: int) -> Sequence[str]:
        return manage("db_worker", "--no-startup-delay", "--queue-name", "*", "-v", "0")


PEER = DjangoTasksDb()
