"""procrastinate, through its Django app: LISTEN/NOTIFY, asyncio, plain functions in threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.base import Peer, manage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Procrastinate(Peer):
    name = "procrastinate"
    requirements = ("procrastinate[django]==3.10.0",)
    databases = ("postgres",)
    apps = ("procrastinate.contrib.django",)
    has_async = True
    unfinished_sql = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    table = "procrastinate_jobs"
    finished = {"status": "'succeeded'"}
    future = {"scheduled_at": "{in_a_year}"}

    def decorator(self, *, writes: bool) -> Callable[[Any], Any]:
        from procrastinate.contrib.django import app

        decorate: Callable[[Any], Any] = app.task
        return decorate

    def enqueue(self, task: Any, number: int) -> None:
        task.defer(number=number)

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        task.batch_defer(*({"number": number} for number in numbers))

    def worker(self, seats: int) -> Sequence[str]:
        return manage("procrastinate", "worker", "--concurrency", str(seats))


PEER = Procrastinate()
