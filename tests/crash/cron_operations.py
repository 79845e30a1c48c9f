"""Firing and reconciling, killed: every occurrence is accounted for once."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django_helisched import scheduler
from django_helisched.crons.reconcile import plan_reconcile
from django_helisched.crons.registry import CronJobs, cron_jobs
from django_helisched.jobs.ids import uuid7
from django_helisched.models import Cron, Fire, Job
from django_helisched.testing.contract import START
from django_helisched.testing.contract.factories import SECOND
from tests.crash.bodies import write_occurrence
from tests.crash.operation import Operation
from tests.crash.world import ledger

if TYPE_CHECKING:
    from tests.crash.operation import Armed
    from tests.crash.world import World


def reconcile(world: World, declared: CronJobs) -> None:
    plan = partial(
        plan_reconcile,
        declarations=declared.entries(),
        source="code",
        space="",
        declared_by="a process",
        booted_at=START,
        new_id=uuid7,
        tzdata_version="",
    )
    world.crons.reconcile("code", "", lambda rows, now: plan(rows, now=now))


# What becomes due while leases lapse would blur the count.
LAST = START + 3 * SECOND


class FireOne(Operation):
    """A cron with three overdue occurrences, all of which are made up for."""

    policies: tuple[Any, ...] = ("fire_all",)

    def prepare(self, world: World) -> None:
        declared = cron_jobs()
        for policy in self.policies:
            declared.interval(policy, SECOND, write_occurrence, [policy], catch_up=policy, end=LAST)
        reconcile(world, declared)
        world.clock.advance(3)

    def act(self, world: World, armed: Armed) -> None:
        driver = world.driver(seats=0)
        with armed:
            driver.tick()

    def audit(self) -> None:
        assert ledger() == Counter(["fire_all 1", "fire_all 2", "fire_all 3"])
        assert accounts() == [("fire_all", 3, 0, None)]
        assert fires() == [("fire_all", START + number * SECOND, 1, "success") for number in (1, 2, 3)]


class FireTwoTogether(FireOne):
    """The same, and a cron that makes up for the last one only."""

    policies = ("fire_all", "fire_once")

    def audit(self) -> None:
        assert ledger() == Counter(["fire_all 1", "fire_all 2", "fire_all 3", "fire_once 3"])
        assert Job.objects.filter(trigger="cron").count() == 4
        assert accounts() == [("fire_all", 3, 0, None), ("fire_once", 1, 2, None)]
        assert fires() == [
            *[("fire_all", START + number * SECOND, 1, "success") for number in (1, 2, 3)],
            ("fire_once", START + SECOND, 2, None),
            ("fire_once", START + 3 * SECOND, 1, "success"),
        ]


class Backfill(Operation):
    """An operator makes up for the two occurrences that a cron has missed, and asks again."""

    def prepare(self, world: World) -> None:
        declared = cron_jobs()
        declared.interval("late", SECOND, write_occurrence, ["late"], catch_up="fire_once", end=LAST)
        reconcile(world, declared)
        world.clock.advance(3)
        world.driver(seats=0).tick()

    def act(self, world: World, armed: Armed) -> None:
        with armed:
            self._backfill()

    def again(self, world: World) -> None:
        self._backfill()
        assert self._backfill() == 0

    def audit(self) -> None:
        assert ledger() == Counter(["late 1", "late 2", "late 3"])
        assert accounts() == [("late", 3, 0, None)]
        assert fires() == [("late", START + number * SECOND, 1, "success") for number in (1, 2, 3)]

    def _backfill(self) -> int:
        return len(scheduler.crons.backfill("late", START, LAST).job_ids)


def accounts() -> list[Any]:
    """Return what the rows of the crons say of their occurrences."""
    return list(Cron.objects.order_by("name").values_list("name", "fired", "missed", "next_run_at"))


def fires() -> list[Any]:
    """Return what became of each occurrence, and of its job."""
    rows = Fire.objects.order_by("cron__name", "due_at")
    return list(rows.values_list("cron__name", "due_at", "count", "job__state"))


class Reconcile(Operation):
    """A deploy: one cron is new, one is gone, one has another schedule and three overdue occurrences, one stays."""

    def prepare(self, world: World) -> None:
        reconcile(world, _declared("gone", "stays", every=SECOND))
        world.clock.advance(3)

    def act(self, world: World, armed: Armed) -> None:
        with armed:
            self._deploy(world)

    def again(self, world: World) -> None:
        self._deploy(world)
        self._deploy(world)

    def recover(self, world: World) -> None:
        """Fire nothing: what is due is what is to be seen."""

    def audit(self) -> None:
        rows = Cron.objects.order_by("name").values_list("name", "version", "missed", "next_run_at")
        assert list(rows) == [
            ("changes", 2, 3, START + 3 * SECOND + timedelta(hours=1)),
            ("gone", 2, 0, None),
            ("new", 1, 0, START + 3 * SECOND + timedelta(days=1)),
            ("stays", 1, 0, START + timedelta(days=1)),
        ]
        assert list(Cron.objects.exclude(archived_at=None).values_list("name", flat=True)) == ["gone"]
        assert list(Fire.objects.values_list("cron__name", "count", "outcome")) == [("changes", 3, "missed")]

    def _deploy(self, world: World) -> None:
        reconcile(world, _declared("new", "stays", every=timedelta(hours=1)))


def _declared(*names: str, every: timedelta) -> CronJobs:
    declared = cron_jobs()
    declared.interval("changes", every, write_occurrence, ["changes"])
    for name in names:
        declared.interval(name, timedelta(days=1), write_occurrence, [name])
    return declared
