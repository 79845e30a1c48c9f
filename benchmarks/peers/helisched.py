"""This package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers.base import Peer, manage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parents[2]


class Helisched(Peer):
    name = "django-helisched"
    requirements = ("--editable", str(ROOT))
    databases = ("postgres", "sqlite", "mariadb")
    apps = ("django_helisched",)
    pace = 8000
    has_async = True
    unfinished_sql = "SELECT count(*) FROM helisched_job WHERE state IN ('pending', 'in_progress')"
    table = "helisched_job"
    finished = {"state": "'success'", "completed_at": "created_at", "attempt_count": "1", "fence": "1"}
    future = {"next_run_at": "{in_a_year}", "due_at": "{in_a_year}"}

    def decorator(self, *, writes: bool) -> Callable[[Any], Any]:
        from django_helisched import action, mutation

        return mutation if writes else action

    def enqueue(self, task: Any, number: int) -> None:
        task.enqueue(number)

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        from django_helisched import scheduler

        scheduler.enqueue_many([(task, [number]) for number in numbers])

    def worker(self, seats: int) -> Sequence[str]:
        return manage("runscheduler", "--threads", str(seats), "-v", "0")

    def asynchronous_worker(self, jobs: int) -> Sequence[str]:
        # 100 at once is the default; the threads are for the plain functions.
        return manage("runscheduler", "-v", "0")


PEER = Helisched()
