"""pgqueuer on asyncpg: asyncio, LISTEN/NOTIFY, finished jobs are written in batches."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from benchmarks.peers.base import Peer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

BATCH = 100  # rows of one claim; its default of 10 is slower here


class PgQueuer(Peer):
    name = "pgqueuer"
    requirements = ("pgqueuer[asyncpg]==1.6.0",)
    databases = ("postgres",)
    pace = 4000
    note = "writes the ends of jobs in batches; plain asyncio bodies; it has no connection of Django's"
    # A body of its own kind would write by asyncpg, which is another comparison.
    leaves_out = frozenset({"write", "write-16", "pause-4"})
    has_async = True
    unfinished_sql = "SELECT count(*) FROM pgqueuer WHERE status IN ('queued', 'picked')"
    table = "pgqueuer"
    future = {"execute_after": "{in_a_year}"}

    def prepare(self) -> None:
        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        async def install() -> None:
            connection = await asyncpg.connect(dsn())
            await Queries(AsyncpgDriver(connection)).install()
            await connection.close()

        super().prepare()
        asyncio.run(install())

    @cached_property
    def _connection(self) -> Any:
        import psycopg

        return psycopg.connect(dsn(), autocommit=True)

    @cached_property
    def _queries(self) -> Any:
        from pgqueuer.adapters.drivers.psycopg import SyncPsycopgDriver
        from pgqueuer.adapters.persistence.queries import SyncQueries

        return SyncQueries(SyncPsycopgDriver(self._connection))

    def transaction(self) -> AbstractContextManager[Any]:
        transaction: AbstractContextManager[Any] = self._connection.transaction()
        return transaction

    def enqueue(self, task: Any, number: int) -> None:
        self._queries.enqueue(task.__name__, str(number).encode())

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        count = len(numbers)
        self._queries.enqueue([task.__name__] * count, [str(number).encode() for number in numbers], [0] * count)

    def worker(self, seats: int) -> Sequence[str]:
        return ["-m", "benchmarks.peers.pgqueuer"]


def dsn() -> str:
    """Return the place of the database that Django's settings name."""
    from django.conf import settings

    database = settings.DATABASES["default"]
    secret = f":{quote(database['PASSWORD'])}" if database["PASSWORD"] else ""
    return f"postgresql://{database['USER']}{secret}@{database['HOST']}:{database['PORT']}/{database['NAME']}"


async def work() -> None:
    """Run one worker until it is told to stop."""
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver

    from benchmarks.app import tasks

    worker = PgQueuer(AsyncpgDriver(await asyncpg.connect(dsn())))

    @worker.entrypoint("noop")
    async def noop(job: Any) -> None:
        tasks.noop(int(job.payload))

    @worker.entrypoint("stamp")
    async def stamp(job: Any) -> None:
        tasks.stamp(int(job.payload))

    @worker.entrypoint("pause_async")
    async def pause_async(job: Any) -> None:
        await tasks.pause_async(int(job.payload))

    await worker.run(batch_size=BATCH)


if __name__ == "__main__":
    import django

    django.setup()
    asyncio.run(work())

PEER = PgQueuer()
