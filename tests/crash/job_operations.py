"""Enqueues, claims and runs, killed: what a caller and a body did is there whole, or not at all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from django.db import transaction

from django_helisched.functions.call import Call, enqueue_calls
from django_helisched.models import Job
from django_helisched.testing.contract.factories import LEASE
from tests.app.models import Ledger
from tests.crash.bodies import act, act_once, told, write, write_and_enqueue, write_narrowly
from tests.crash.operation import DEAD, Operation
from tests.crash.world import job, ledger, outcomes, states

if TYPE_CHECKING:
    from tests.crash.operation import Armed
    from tests.crash.world import World


class EnqueueInATransaction(Operation):
    """A caller's transaction: its own row and a job with a key, both or neither; then the caller asks again."""

    def act(self, world: World, armed: Armed) -> None:
        with armed:
            self._order()

    def again(self, world: World) -> None:
        assert Job.objects.count() == Ledger.objects.filter(marker="order").count()
        if not Ledger.objects.exists():
            self._order()
        write.using(idempotency_key="order 7").enqueue("twice")

    def audit(self) -> None:
        assert ledger() == Counter(["order", "effect", "order 7 success"])
        assert states() == {"effect": "success"}

    def _order(self) -> None:
        with transaction.atomic():
            keyed = write.using(name="effect", idempotency_key="order 7", on_complete=told, context="order 7")
            keyed.enqueue("effect")
            Ledger.objects.create(marker="order")


class EnqueueMany(Operation):
    """Several jobs with arguments, each with a name of its own, in one call and no transaction: all or none."""

    def act(self, world: World, armed: Armed) -> None:
        with armed:
            self._enqueue()

    def again(self, world: World) -> None:
        assert Job.objects.count() in {0, 3}
        if not Job.objects.exists():
            self._enqueue()

    def audit(self) -> None:
        assert ledger() == Counter("abc")

    def _enqueue(self) -> None:
        enqueue_calls([Call(write.using(name=marker), [marker]) for marker in "abc"])


class EnqueueAlike(EnqueueMany):
    """Several jobs that differ in their arguments only."""

    is_one_statement = True  # on PostgreSQL

    def _enqueue(self) -> None:
        enqueue_calls([Call(write, [marker]) for marker in "abc"])


class Claim(Operation):
    """A claim that nobody lives to run."""

    is_one_statement = True

    def prepare(self, world: World) -> None:
        for marker in "abc":
            write.using(name=marker, on_complete=told, context=marker).enqueue(marker)

    def act(self, world: World, armed: Armed) -> None:
        with armed:
            world.jobs.claim(worker_id=DEAD, limit=64, lease=LEASE)

    def audit(self) -> None:
        assert ledger() == Counter([*"abc", *(f"{marker} success" for marker in "abc")])
        assert [outcomes(marker) for marker in "abc"] == [["success"]] * 3
        assert {row.attempts for row in Job.objects.all()} == {0}


class RunAMutation(Operation):
    """Claim, body, child, settlement and callback: the body's row and its child exactly once."""

    def prepare(self, world: World) -> None:
        write_and_enqueue.using(name="m", on_complete=told, context="m").enqueue("m")

    def act(self, world: World, armed: Armed) -> None:
        driver = world.driver(seats=1)
        with armed:
            driver.tick()

    def audit(self) -> None:
        assert ledger() == Counter(["m", "child of m", "m success"])
        assert outcomes("m") == ["success"]
        assert Job.objects.filter(parent=job("m")).count() == 1


class RunAnAction(Operation):
    """An effect on the world at least once, and one callback."""

    def prepare(self, world: World) -> None:
        act.using(name="a", on_complete=told, context="a").enqueue("a")

    def act(self, world: World, armed: Armed) -> None:
        driver = world.driver(seats=1)
        with armed:
            driver.tick()

    def audit(self) -> None:
        effects = ledger()
        assert effects.pop("a") in {1, 2}
        assert effects == Counter(["a success"])
        assert outcomes("a") == ["success"]


class RunAnActionOnce(Operation):
    """An effect at most once; a job that says it was lost may have had it."""

    def prepare(self, world: World) -> None:
        act_once.using(name="o", on_complete=told, context="o").enqueue("o")

    def act(self, world: World, armed: Armed) -> None:
        driver = world.driver(seats=1)
        with armed:
            driver.tick()

    def audit(self) -> None:
        effects, state = ledger(), states()["o"]
        assert effects.pop("o", 0) in ({1} if state == "success" else {0, 1})
        assert effects == Counter([f"o {state}"])
        assert job("o").failure_reason == ("" if state == "success" else "lost")
        assert outcomes("o", lost=True) == (["success"] if state == "success" else ["lost"])


class RunUnderALimit(Operation):
    """A look that lets one of two jobs out, and its run: the other one's turn comes, whoever died where."""

    def prepare(self, world: World) -> None:
        for name in ("first", "second"):
            write_narrowly.using(name=name, on_complete=told, context=name).enqueue(name)

    def act(self, world: World, armed: Armed) -> None:
        driver = world.driver(seats=1)
        with armed:
            driver.tick()

    def again(self, world: World) -> None:
        assert world.jobs.out_under("narrow") <= 1

    def audit(self) -> None:
        assert ledger() == Counter(["first", "second", "first success", "second success"])
        assert [outcomes(name) for name in ("first", "second")] == [["success"]] * 2
