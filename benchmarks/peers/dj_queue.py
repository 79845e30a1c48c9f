"""dj_queue: a supervisor with a worker and a dispatcher process; seats are threads of the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.base import TasksPeer, manage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DjQueue(TasksPeer):
    name = "dj-queue"
    requirements = ("dj-queue==0.14.2",)
    apps = ("dj_queue",)
    backend = "dj_queue.backend.DjQueueBackend"
    note = "a supervisor and a dispatcher beside the worker"
    unfinished_sql = "SELECT count(*) FROM dj_queue_jobs WHERE finished_at IS NULL"
    table = "dj_queue_jobs"
    finished = {"finished_at": "created_at"}

    def settings(self, database: Mapping[str, Any], seats: int) -> dict[str, Any]:
        worker = {"queues": "*", "threads": seats, "processes": 1, "polling_interval": 0.1}
        options = {"workers": [worker]}
        return {
            "DATABASE_ROUTERS": ["dj_queue.routers.DjQueueRouter"],
            "TASKS": {"default": {"BACKEND": self.backend, "QUEUES": [], "OPTIONS": options}},
        }

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        task.get_backend().enqueue_all([(task, [number], {}) for number in numbers])

    def worker(self, seats: int) -> Sequence[str]:
        return manage("dj_queue", "-v", "0")


PEER = DjQueue()
