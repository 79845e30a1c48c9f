"""django-ox: seats are threads of one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.base import TasksPeer, manage

if TYPE_CHECKING:
    from collections.abc import Sequence


class DjangoOx(TasksPeer):
    name = "django-ox"
    requirements = ("django-ox==1.9.1",)
    apps = ("django_ox",)
    backend = "django_ox.backend.OxBackend"
    unfinished_sql = "SELECT count(*) FROM django_ox_oxtask WHERE status IN ('READY', 'RUNNING')"
    table = "django_ox_oxtask"
    finished = {"status": "'SUCCESSFUL'", "finished_at": "enqueued_at"}
    future = {"run_after": "{in_a_year}"}

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        from django_ox.bulk import enqueue_many

        enqueue_many(task, [((number,), {}) for number in numbers])

    def worker(self, seats: int) -> Sequence[str]:
        return manage("ox_worker", "--concurrency", str(seats), "-v", "0")


PEER = DjangoOx()
