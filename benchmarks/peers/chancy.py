"""chancy: asyncio around threads or around async functions, LISTEN/NOTIFY, finished jobs are written in batches."""

from __future__ import annotations

import asyncio
import logging
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from benchmarks.peers.base import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Chancy(Peer):
    name = "chancy"
    requirements = ("chancy==0.26.0",)
    databases = ("postgres",)
    pace = 1000
    note = "writes the ends of jobs in batches"
    has_async = True
    unfinished_sql = "SELECT count(*) FROM chancy_jobs WHERE state IN ('pending', 'running', 'retrying')"
    table = "chancy_jobs"
    finished = {"state": "'succeeded'", "completed_at": "created_at"}
    future = {"scheduled_at": "{in_a_year}"}

    def decorator(self, *, writes: bool) -> Callable[[Any], Any]:
        from chancy import job

        decorate: Callable[[Any], Any] = job()
        return decorate

    def prepare(self) -> None:
        async def install() -> None:
            async with app() as chancy:
                await chancy.migrate()

        super().prepare()
        asyncio.run(install())

    @cached_property
    def _app(self) -> Any:
        return app()

    def enqueue(self, task: Any, number: int) -> None:
        from django.db import connection

        job = task.job.with_kwargs(number=number)
        if connection.in_atomic_block:
            self._app.sync_push_many_ex(_DictCursor(connection), [job])
        else:
            self._app.sync_push(job)

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        jobs = [task.job.with_kwargs(number=number) for number in numbers]
        # It pushes while its answer is read.
        for _ in self._app.sync_push_many(jobs):
            pass

    def worker(self, seats: int) -> Sequence[str]:
        return ["-m", "benchmarks.peers.chancy", "Threaded", str(seats)]

    def asynchronous_worker(self, jobs: int) -> Sequence[str]:
        return ["-m", "benchmarks.peers.chancy", "Async", str(jobs)]


class _DictCursor:
    """The cursor of Django's transaction that chancy's own push asks for: rows as dicts."""

    def __init__(self, connection: Any) -> None:
        from psycopg.rows import dict_row

        self._cursor = connection.connection.cursor(row_factory=dict_row)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def app() -> Any:
    """Return chancy on the database that Django's settings name."""
    from chancy import Chancy
    from django.conf import settings

    log = logging.getLogger("chancy")
    return Chancy(settings.DATABASES["default"], log=log)


async def work(executor: str, seats: int) -> None:
    """Run one worker until it is told to stop."""
    from chancy import Chancy, Queue, Worker

    async with app() as chancy:
        kind = Chancy.Executor[executor]
        queue = Queue("default", concurrency=seats, executor=kind, eager_polling=True)
        await chancy.declare(queue, upsert=True)
        async with Worker(chancy) as worker:
            await worker.wait_for_shutdown()


if __name__ == "__main__":
    import django

    django.setup()
    asyncio.run(work(sys.argv[1], int(sys.argv[2])))

PEER = Chancy()
