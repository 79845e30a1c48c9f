"""Pruning, killed: a job goes whole or stays whole, and the next prune finishes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django_helisched.crons.catch_up import FiringPlan
from django_helisched.jobs.job import State
from django_helisched.jobs.retention import Keep, Retention
from django_helisched.models import Attempt, Fire, Job, JobArgs, Worker
from django_helisched.scheduler.pruning import Round
from django_helisched.testing.contract.cron_factories import MINUTE, inserted, missed_run, new_cron
from django_helisched.testing.contract.factories import START
from django_helisched.testing.contract.pruning import finished
from tests.crash.operation import Operation

if TYPE_CHECKING:
    from tests.crash.operation import Armed
    from tests.crash.world import World

DAY = timedelta(days=1)
KEPT = Retention(
    success=Keep(age=DAY), failed=Keep(age=9 * DAY), canceled=Keep(count=1), fires=DAY, workers=DAY, key_ttl=3 * DAY
)


class Prune(Operation):
    """A family, a key whose time is over and one whose is not, one too many, a failure, an occurrence, a worker."""

    def prepare(self, world: World) -> None:
        keyed = {"key past": "past", "parent": None}
        names = {name: finished(world.jobs, name=name, args=[name], idempotency_key=key) for name, key in keyed.items()}
        finished(world.jobs, name="child", args=["child"], parent_id=names["parent"].id)
        finished(world.jobs, State.FAILED, name="failed", args=["failed"])
        finished(world.jobs, State.CANCELED, name="older", args=["older"])
        finished(world.jobs, State.CANCELED, name="newer", args=["newer"])
        missed = FiringPlan(missed=1, missed_runs=(missed_run(START, START, 1),), next_run_at=START + MINUTE)
        assert world.crons.fire(inserted(world.crons, new_cron()), missed, [])
        world.driver()
        world.clock.advance(2 * DAY)
        finished(world.jobs, name="key", args=["key"], idempotency_key="k")
        world.clock.advance(2 * DAY)

    def act(self, world: World, armed: Armed) -> None:
        with armed:
            self._prune(world)

    def again(self, world: World) -> None:
        for name in Job.objects.values_list("name", flat=True):
            assert JobArgs.objects.get(job__name=name).args == [name]
            assert Attempt.objects.filter(job__name=name).count() == 1
        self._prune(world)
        assert self._prune(world) == 0

    def recover(self, world: World) -> None:
        """Run nothing: what is left is what is to be seen."""

    def audit(self) -> None:
        assert sorted(Job.objects.values_list("name", flat=True)) == ["failed", "key", "newer"]
        assert [model.objects.count() for model in (JobArgs, Attempt, Fire, Worker)] == [3, 3, 0, 0]

    def _prune(self, world: World) -> int:
        return sum(step.pruned.count for step in Round(world.jobs, world.crons, KEPT, limit=2).steps())
