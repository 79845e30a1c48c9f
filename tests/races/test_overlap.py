"""Jobs of a cron that may not overlap: whoever decides meanwhile, one is out at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from django_helisched.crons.catch_up import plan_firing
from django_helisched.crons.cron import CronSnapshot, Overlap
from django_helisched.crons.reconcile import ReconcilePlan
from django_helisched.exceptions import Busy
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State
from django_helisched.testing.contract import START
from django_helisched.testing.contract.factories import GRACE, claimed, enqueued, new_job, read, settled, success
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.stores.orm import OrmCronStore, OrmJobStore
    from tests.races.stage import Stage


@pytest.fixture
def cron(crons: OrmCronStore) -> CronSnapshot:
    """Give a cron that is due now and cancels what is left of the occurrence before."""
    row = CronSnapshot(
        id=uuid7(),
        name="chart",
        spec='{"kind":"interval","ms":60000}',
        overlap=Overlap.CANCEL_PREVIOUS,
        anchor=START,
        fn_path="shop.jobs.work",
        next_run_at=START,
        counted_since=START,
        declared_at=START,
    )
    crons.reconcile("code", "", lambda rows, now: ReconcilePlan(inserts=(row,)))
    return row


def of(cron: CronSnapshot) -> dict[str, Any]:
    return {"cron_id": cron.id, "overlap_key": f"cron:{cron.id}"}


def firing(store: OrmJobStore, crons: OrmCronStore, cron: CronSnapshot) -> Callable[[], bool]:
    plan = plan_firing(cron, crons.now(), catchup_cap=1000, misfire_grace=GRACE)
    jobs = [new_job(store, due_at=fire.due_at, **of(cron)) for fire in plan.fires]
    return lambda: crons.fire(cron, plan, jobs)


def out(store: OrmJobStore, *jobs: Any) -> list[bool]:
    return [read(store, job.id).hold == "" for job in jobs]


def test_of_two_that_admit_at_once_one_lets_a_job_out(stage: Stage, store, cron):
    jobs = [enqueued(store, **of(cron)) for _ in range(2)]
    first = stage.holds_open(store.admit)
    second = stage.enter(store.admit)
    if has_one_writer():
        second.waits()
    else:  # it does not wait for the other, and leaves the cron alone
        assert second.result() == 0
    assert first.finish() == 1
    assert second.result() == 0
    assert out(store, *jobs) == [True, False]


def test_where_the_first_rolls_back_the_next_look_lets_the_job_out(stage: Stage, store, cron):
    job = enqueued(store, **of(cron))
    first = stage.holds_open(store.admit)
    first.break_off()
    assert out(store, job) == [False]
    assert store.admit() == 1


def test_nobody_is_let_out_while_the_cron_fires(stage: Stage, store, crons, cron):
    older = enqueued(store, **of(cron))
    fire = stage.holds_open(firing(store, crons, cron))
    admit = stage.enter(store.admit)
    if not has_one_writer():
        assert admit.result() == 0
    assert fire.finish() is True
    admit.result()
    assert read(store, older.id).state == State.CANCELED
    assert store.admit() + admit.result() == 1


def test_a_job_that_is_being_canceled_holds_up_nobody(stage: Stage, store, cron):
    first, second = (enqueued(store, **of(cron)) for _ in range(2))
    cancel = stage.holds_open(lambda: store.cancel(first.id))
    admit = stage.enter(store.admit)
    if not has_one_writer():
        assert admit.result() == 0
    assert cancel.finish() is True
    assert store.admit() + admit.result() == 1
    assert out(store, second) == [True]


def test_a_firing_waits_for_the_end_of_the_job_that_it_would_cancel(stage: Stage, store, crons, cron):
    enqueued(store, **of(cron))
    store.admit()
    claim = claimed(store)
    settle = stage.holds_open(lambda: settled(store, claim, success()))
    fire = stage.enter(firing(store, crons, cron)).waits()
    settle.finish()
    assert fire.result() is True
    assert read(store, claim.id).state == State.SUCCESS
    assert store.admit() == 1


def test_a_firing_gives_up_where_the_job_stays_in_use(stage: Stage, store, crons, cron):
    enqueued(store, **of(cron))
    store.admit()
    claim = claimed(store)
    settle = stage.holds_open(lambda: settled(store, claim, success()))
    with pytest.raises(Busy):
        firing(store, crons, cron)()
    settle.finish()
    assert crons.get(cron.id).version == cron.version
    assert firing(store, crons, cron)()
