"""What the runner asks of a peer, and what most of them have in common."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Peer:
    """One way to run jobs. All but the attributes is called in the peer's own environment, after django.setup()."""

    name: ClassVar[str]
    requirements: ClassVar[tuple[str, ...]]
    databases: ClassVar[tuple[str, ...]] = ("postgres", "sqlite")
    apps: ClassVar[tuple[str, ...]] = ()
    # Jobs a second, roughly: how many a run gets, so that it lasts a few seconds.
    pace: ClassVar[int] = 500
    # What a reader must know before comparing: a weaker promise, processes instead of threads.
    note: ClassVar[str] = ""
    joins_transaction: ClassVar[bool] = True
    has_bulk: ClassVar[bool] = True
    has_async: ClassVar[bool] = False
    # Cases that this peer has no fair answer to.
    leaves_out: ClassVar[frozenset[str]] = frozenset()
    # Statements that count what is not finished; pending work only, so that the question itself stays cheap.
    unfinished_sql: ClassVar[str]
    # For growth: a table, and the columns that make a copy of a job finished, or due in a year.
    table: ClassVar[str] = ""
    finished: ClassVar[Mapping[str, str]] = {}
    future: ClassVar[Mapping[str, str]] = {}

    def settings(self, database: Mapping[str, Any], seats: int) -> dict[str, Any]:
        """Return what Django's settings need besides the app."""
        return {}

    def decorator(self, *, writes: bool) -> Callable[[Any], Any]:
        """Return what makes a function a job."""
        return lambda function: function

    def prepare(self) -> None:
        """Make the tables."""
        from django.core.management import call_command

        call_command("migrate", verbosity=0, interactive=False)

    def enqueue(self, task: Any, number: int) -> None:
        """Store one job by the call that the peer's docs show."""
        raise NotImplementedError

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        """Store many by the peer's own bulk call."""
        raise NotImplementedError

    def transaction(self) -> AbstractContextManager[Any]:
        """Return the transaction that a caller of ``enqueue`` has open."""
        from django.db import transaction

        return transaction.atomic()

    def unfinished(self) -> int:
        """Return how many jobs are not settled."""
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(self.unfinished_sql)
            return int(cursor.fetchone()[0])

    def worker(self, seats: int) -> Sequence[str]:
        """Return the arguments of python that start one worker process with so many jobs at once."""
        raise NotImplementedError

    def asynchronous_worker(self, jobs: int) -> Sequence[str]:
        """Return the same for ``async def`` jobs."""
        return self.worker(jobs)


class TasksPeer(Peer):
    """A backend of Django's own task framework."""

    backend: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    def settings(self, database: Mapping[str, Any], seats: int) -> dict[str, Any]:
        return {"TASKS": {"default": {"BACKEND": self.backend, "QUEUES": [], "OPTIONS": dict(self.options)}}}

    def decorator(self, *, writes: bool) -> Callable[[Any], Any]:
        from django.tasks import task

        return task

    def enqueue(self, task: Any, number: int) -> None:
        task.enqueue(number)


def manage(*arguments: str) -> list[str]:
    """Return the arguments of python for a management command."""
    return ["-m", "django", *arguments]
