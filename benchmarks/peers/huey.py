"""huey on its PostgreSQL and SQLite storages, through its Django app."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from benchmarks.peers.base import Peer, manage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class NormalConnection(sqlite3.Connection):
    """As durable as everybody else's connection: huey's own switch knows only FULL and OFF."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.execute("PRAGMA synchronous=NORMAL")


class Huey(Peer):
    name = "huey"
    requirements = ("huey==3.5.4",)
    apps = ("huey.contrib.djhuey",)
    pace = 2000
    note = "takes a job out of the table before it runs: a killed worker's job is lost"
    # Its storages have connections of their own.
    joins_transaction = False
    has_bulk = False

    def settings(self, database: Mapping[str, Any], seats: int) -> dict[str, Any]:
        from huey import PostgresHuey, SqliteHuey

        if database["ENGINE"].endswith("sqlite3"):
            file = {"filename": database["NAME"], "factory": NormalConnection}
            queue = SqliteHuey("bench", create_tables=False, timeout=20, **file)
        else:
            place = {"host": database["HOST"], "port": database["PORT"], "user": database["USER"]}
            # The tables are made in prepare(), not by the import of the settings.
            password = database["PASSWORD"] or None
            queue = PostgresHuey("bench", dbname=database["NAME"], password=password, create_tables=False, **place)
        return {"HUEY": queue}

    def prepare(self) -> None:
        from huey.contrib.djhuey import HUEY

        super().prepare()
        HUEY.storage.initialize_schema()

    def decorator(self, *, writes: bool) -> Callable[[Any], Any]:
        from huey.contrib.djhuey import db_task, task

        decorate: Callable[[Any], Any] = db_task() if writes else task()
        return decorate

    def enqueue(self, task: Any, number: int) -> None:
        task(number)

    def unfinished(self) -> int:
        from huey.contrib.djhuey import HUEY

        return int(HUEY.pending_count())

    def worker(self, seats: int) -> Sequence[str]:
        return manage("run_huey", "--workers", str(seats), "--worker-type", "thread", "--quiet", "--no-periodic")


PEER = Huey()
