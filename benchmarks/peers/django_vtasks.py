"""django-vtasks on its database backend: asyncio, seats are its concurrency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.base import TasksPeer, manage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class DjangoVtasks(TasksPeer):
    name = "django-vtasks"
    requirements = ("django-vtasks[valkey]==3.2.0",)
    apps = ("django_vtasks", "django_vtasks.db")
    backend = "django_vtasks.backends.db.DatabaseTaskBackend"
    has_async = True
    unfinished_sql = "SELECT count(*) FROM db_queuedtask WHERE status IN ('QUEUED', 'PROCESSING')"
    table = "db_queuedtask"
    future = {"run_after": "{in_a_year}"}

    def decorator(self, *, writes: bool) -> Callable[[Any], Any]:
        from django_vtasks import task

        decorate: Callable[[Any], Any] = task
        return decorate

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        from django.tasks import task_backends

        backend: Any = task_backends["default"]
        backend.enqueue_many([(task, (number,), {}) for number in numbers])

    def worker(self, seats: int) -> Sequence[str]:
        return manage("runworker", "--concurrency", str(seats))


PEER = DjangoVtasks()
