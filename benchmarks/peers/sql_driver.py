"""The limit of plain SQL by the database's own driver: see benchmarks/limits.py."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import limits
from benchmarks.peers.base import Peer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager


class PlainSql(Peer):
    """Plain SQL on one connection."""

    kind: ClassVar[str] = "driver"
    name = "plain SQL, driver"
    requirements = ()
    pace = 20000
    note = "no promises: the limit"
    leaves_out = frozenset(
        {"noop-8", "noop-2p", "write-16", "pause-4", "pickup", "pickup-busy", "idle", "memory", "start"}
    )
    unfinished_sql = limits.UNFINISHED

    @cached_property
    def _database(self) -> Any:
        return limits.opened(self.kind)

    def prepare(self) -> None:
        super().prepare()
        limits.create(self._database)

    def transaction(self) -> AbstractContextManager[Any]:
        transaction: AbstractContextManager[Any] = self._database.transaction()
        return transaction

    def enqueue(self, task: Any, number: int) -> None:
        self._database.execute(limits.INSERT, [task.__name__, number])

    def enqueue_many(self, task: Any, numbers: Sequence[int]) -> None:
        limits.insert_many(self._database, task.__name__, numbers)

    def worker(self, seats: int) -> Sequence[str]:
        return ["-m", "benchmarks.limits", self.kind]


PEER = PlainSql()
