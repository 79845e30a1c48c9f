"""Settlements, sweeps, cancels and requeues, killed: every end is whole, and calls back once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from django_helisched import scheduler
from django_helisched.jobs.follow_up import follow_up_of, result_of
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State
from django_helisched.models import Attempt, Job
from django_helisched.stores.base import Settlement
from django_helisched.testing.contract.factories import LEASE, SECOND, canceled, failure, retry, success
from tests.crash.bodies import act, act_once, refuse, told, write
from tests.crash.operation import DEAD, Operation
from tests.crash.world import LONG, job, ledger, outcomes, states

if TYPE_CHECKING:
    from django_helisched.jobs.job import ClaimedJob
    from django_helisched.jobs.outcome import Outcome
    from tests.crash.operation import Armed
    from tests.crash.world import World


class Settle(Operation):
    """Four ends in one batch: success, failure, cancel with a child, and a retry."""

    def prepare(self, world: World) -> None:
        act.using(name="well", on_complete=told, context="well").enqueue("well")
        refuse.using(name="badly", on_complete=told, context="badly").enqueue()
        act.using(name="stopped", on_complete=told, context="stopped").enqueue("stopped")
        act.using(name="again", on_complete=told, context="again").enqueue("again")

    def act(self, world: World, armed: Armed) -> None:
        claims = world.jobs.claim(worker_id=DEAD, limit=64, lease=LEASE)
        stopped = job("stopped")
        write.using(name="child", parent=stopped, on_complete=told, context="child").run_after(2 * LONG, "child")
        # As if the child had been enqueued a moment after the cancel.
        Job.objects.filter(pk=stopped.pk).update(cancel_requested_at=world.clock.now())
        outcomes = {"well": success(), "badly": failure(), "stopped": canceled(), "again": retry()}
        with armed:
            world.jobs.settle([_settlement(world, claim, outcomes[claim.name]) for claim in claims])

    def audit(self) -> None:
        effects = ledger()
        # Actions; what a settlement was lost of has run once more, in the process that came after.
        assert effects.pop("well", 0) in {0, 1}
        assert effects.pop("again") == 1
        assert effects == Counter(
            ["well success", "badly failed", "stopped canceled", "again success", "child canceled"]
        )
        assert states() == {
            "well": "success",
            "badly": "failed",
            "stopped": "canceled",
            "again": "success",
            "child": "canceled",
        }


class Sweep(Operation):
    """Lapsed leases that go back, fail and cancel, and a job whose time is over."""

    def prepare(self, world: World) -> None:
        act.using(name="back", on_complete=told, context="back").enqueue("back")
        act_once.using(name="lost", on_complete=told, context="lost").enqueue("lost")
        act.using(name="stopped", on_complete=told, context="stopped").enqueue("stopped")
        claims = {claim.name: claim for claim in world.jobs.claim(worker_id=DEAD, limit=64, lease=LEASE)}
        world.jobs.start(claims["lost"])
        world.jobs.cancel(job("stopped").pk)
        child = write.using(name="child", on_complete=told, context="child").run_after(2 * LONG, "child")
        Job.objects.filter(pk=child.pk).update(parent=job("stopped"))
        late = write.using(name="late", on_complete=told, context="late", expires_at=world.clock.now() + SECOND)
        late.run_after(SECOND, "late")
        world.clock.advance(LONG)

    def act(self, world: World, armed: Armed) -> None:
        with armed:
            world.driver()

    def audit(self) -> None:
        told_of = ["back success", "lost failed", "stopped canceled", "child canceled", "late failed"]
        assert ledger() == Counter(["back", *told_of])
        assert outcomes("back", lost=True) == ["lost", "success"]
        assert (job("back").losses, job("back").attempts) == (1, 0)
        assert outcomes("lost", lost=True) == outcomes("stopped", lost=True) == ["lost"]
        assert (job("lost").failure_reason, job("late").failure_reason) == ("lost", "expired")
        assert not Attempt.objects.filter(job__in=[job("child"), job("late")]).exists()


class Cancel(Operation):
    """A whole family, or nobody in it; then the operator asks again."""

    def prepare(self, world: World) -> None:
        act.using(name="running", on_complete=told, context="running").enqueue("running")
        world.jobs.claim(worker_id=DEAD, limit=64, lease=LEASE)
        root = write.using(name="root", on_complete=told, context="root").run_after(2 * LONG, "root")
        Job.objects.filter(name="running").update(parent=root)
        for name in ("first", "second"):
            leaf = write.using(name=name, parent=job("running"), on_complete=told, context=name)
            leaf.run_after(2 * LONG, name)

    def act(self, world: World, armed: Armed) -> None:
        root = job("root")
        with armed:
            scheduler.cancel(root)

    def again(self, world: World) -> None:
        asked = job("running").cancel_requested_at is not None
        state = "canceled" if asked else "pending"
        assert states() == {"running": "in_progress", "root": state, "first": state, "second": state}
        assert scheduler.cancel(job("root")) is not asked

    def audit(self) -> None:
        names = ["running", "root", "first", "second"]
        assert states() == dict.fromkeys(names, "canceled")
        assert ledger() == Counter(f"{name} canceled" for name in names)


class Requeue(Operation):
    """A finished job once more, once, and one more callback."""

    ends = 2

    def prepare(self, world: World) -> None:
        write.using(name="r", on_complete=told, context="r").enqueue("r")
        world.recover()

    def act(self, world: World, armed: Armed) -> None:
        row = job("r")
        with armed:
            scheduler.requeue(row)

    def again(self, world: World) -> None:
        is_pending = states()["r"] == State.PENDING
        assert scheduler.requeue(job("r")) is not is_pending

    def audit(self) -> None:
        assert ledger() == Counter({"r": 2, "r success": 2})
        assert outcomes("r") == ["success", "success"]


def _settlement(world: World, claim: ClaimedJob, outcome: Outcome) -> Settlement:
    follow_up = follow_up_of(
        claim,
        context=claim.context,
        options=claim.options,
        result=result_of(outcome),
        new_id=uuid7(),
        now=world.clock.now(),
    )
    return Settlement(claim=claim, outcome=outcome, started_at=world.clock.now(), follow_up=follow_up)
