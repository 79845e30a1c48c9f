"""Batches, killed: there with all their jobs or not at all, and complete once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from django_helisched import scheduler
from django_helisched.models import Batch, Job
from tests.crash.bodies import refuse, told_of_batch, write, write_and_grow
from tests.crash.operation import Operation
from tests.crash.world import ledger, states

if TYPE_CHECKING:
    from tests.crash.operation import Armed
    from tests.crash.world import World


class OpenABatch(Operation):
    """A block with two jobs; then the caller asks again."""

    def act(self, world: World, armed: Armed) -> None:
        with armed:
            self._open()

    def again(self, world: World) -> None:
        assert (Batch.objects.count(), Job.objects.count()) in {(0, 0), (1, 2)}
        if not Batch.objects.exists():
            self._open()

    def audit(self) -> None:
        assert ledger() == Counter(["a", "b", "batch 2 0 0"])

    def _open(self) -> None:
        with scheduler.batch(on_complete=told_of_batch, context="batch"):
            write.enqueue("a")
            write.enqueue("b")


class EndTheLastJobs(Operation):
    """A mutation that lets its batch grow, what it has added, and one that fails: one callback, with the counts."""

    def prepare(self, world: World) -> None:
        with scheduler.batch(on_complete=told_of_batch, context="batch"):
            write_and_grow.using(name="growing").enqueue("growing")
            refuse.using(name="failing").enqueue()

    def act(self, world: World, armed: Armed) -> None:
        driver = world.driver()
        with armed:
            while driver.tick().claimed:
                pass

    def audit(self) -> None:
        assert ledger() == Counter(["growing", "grown", "batch 2 1 0"])
        assert states() == {"growing": "success", "grown": "success", "failing": "failed"}
        assert Batch.objects.filter(completed_at=None).count() == 0
