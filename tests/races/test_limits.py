"""Jobs under a limit: whoever looks, ends or takes back at the same time, never more are out than its capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from django_helisched.jobs.job import Hold, State
from django_helisched.models import Job, Limit
from django_helisched.stores.base import DeclaredLimits
from django_helisched.testing.contract import START
from django_helisched.testing.contract.factories import (
    LEASE,
    SECOND,
    claimed,
    enqueued,
    failure,
    lapse,
    loss,
    read,
    retry,
    settled,
    success,
)
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from django_helisched.stores.orm import OrmJobStore
    from tests.races.stage import Actor, Stage

KEY = "k"


def waiting(store: OrmJobStore, number: int):
    return [enqueued(store, limit_key=KEY) for _ in range(number)]


def admit(store: OrmJobStore, capacity: int = 1, *, began: int = 0) -> int:
    return store.admit(limits=DeclaredLimits(capacity_of=lambda _: capacity, since=START + began * SECOND))


def left_alone(actor: Actor[int]) -> None:
    """The second one does not wait for the first, and lets nobody out; SQLite's one writer makes it wait."""
    if has_one_writer():
        actor.waits()
    else:
        assert actor.result() == 0


@pytest.mark.parametrize("capacity", [1, 2])
def test_of_two_that_admit_at_once_one_fills_the_slots(stage: Stage, store, capacity):
    waiting(store, 1)
    admit(store, capacity)  # a driver's look makes the limit's row by a statement of its own, and here it is one of two
    settled(store, claimed(store), success())
    waiting(store, 3)
    first = stage.holds_open(lambda: admit(store, capacity))
    second = stage.enter(lambda: admit(store, capacity))
    left_alone(second)
    assert first.finish() == capacity
    assert second.result() == 0
    assert store.out_under(KEY) == capacity


def test_one_that_has_read_before_another_admits_reads_again_under_the_lock(stage: Stage, store):
    waiting(store, 3)
    admit(store)
    settled(store, claimed(store), success())
    late = stage.about_to_write(lambda: admit(store))
    assert admit(store) == 1
    assert late.finish() == 0
    assert store.out_under(KEY) == 1


def test_where_the_first_rolls_back_the_next_look_lets_the_job_out(stage: Stage, store):
    waiting(store, 1)
    first = stage.holds_open(lambda: admit(store))
    first.break_off()
    assert store.out_under(KEY) == 0
    assert admit(store) == 1


@pytest.mark.parametrize("outcome", [success(), failure(), retry()], ids=["success", "failure", "retry"])
def test_a_slot_is_free_when_the_settlement_has_committed_and_not_before(stage: Stage, store, outcome):
    waiting(store, 2)
    admit(store)
    claim = claimed(store)
    settle = stage.holds_open(lambda: settled(store, claim, outcome))
    if not has_one_writer():
        assert admit(store) == 0
    settle.finish()
    assert admit(store) == 1
    assert store.out_under(KEY) == 1


def test_a_settlement_that_rolls_back_frees_no_slot(stage: Stage, store):
    waiting(store, 2)
    admit(store)
    claim = claimed(store)
    stage.holds_open(lambda: settled(store, claim, success())).break_off()
    assert admit(store) == 0
    assert read(store, claim.id).state == State.IN_PROGRESS


def test_a_sweep_and_a_look_at_the_same_time(stage: Stage, store, clock):
    first, second = waiting(store, 2)
    admit(store)
    claimed(store)
    lapse(clock)
    sweep = stage.holds_open(lambda: store.sweep({}, lease=LEASE, decide_loss=loss))
    if not has_one_writer():
        assert admit(store) == 0
    assert len(sweep.finish().swept) == 1
    assert admit(store) == 1
    assert read(store, second.id).hold == ""
    assert read(store, first.id).hold == Hold.LATER


def test_a_job_that_is_being_canceled_holds_up_nobody(stage: Stage, store):
    first, second = waiting(store, 2)
    cancel = stage.holds_open(lambda: store.cancel(first.id))
    if not has_one_writer():
        assert admit(store) == 1
        assert read(store, second.id).hold == ""
    assert cancel.finish() is True
    admit(store)
    assert store.out_under(KEY) == 1
    assert read(store, second.id).hold == ""


def test_a_cancel_waits_for_the_look_that_lets_its_job_out(stage: Stage, store):
    [job] = waiting(store, 1)
    look = stage.holds_open(lambda: admit(store))
    cancel = stage.enter(lambda: store.cancel(job.id)).waits()
    assert look.finish() == 1
    assert cancel.result() is True
    row = read(store, job.id)
    assert (row.state, row.hold, store.out_under(KEY)) == (State.CANCELED, "", 0)


def test_a_withdrawal_leaves_what_is_being_claimed(stage: Stage, store):
    [job] = waiting(store, 1)
    admit(store)
    claim = stage.holds_open(lambda: claimed(store))
    withdraw = stage.enter(lambda: store.withdraw(lambda _: False))
    if not has_one_writer():
        assert withdraw.result() == 0
    claim.finish()
    assert withdraw.result() == 0
    assert (read(store, job.id).state, store.out_under(KEY)) == (State.IN_PROGRESS, 1)


def test_a_limit_that_is_forgotten_while_a_job_comes_is_made_again(stage: Stage, store):
    [old] = waiting(store, 1)
    admit(store)
    settled(store, claimed(store), success())
    assert read(store, old.id).state == State.SUCCESS
    forget = stage.holds_open(lambda: store.withdraw(lambda _: True))
    job = stage.enter(lambda: waiting(store, 1)[0])
    if not has_one_writer():
        job.result()
    forget.finish()
    assert not Limit.objects.exists()
    job.result()
    assert admit(store, 1) == 1
    assert Limit.objects.get().capacity == 1


def test_a_lowered_capacity_takes_effect_in_whoever_looks_next(stage: Stage, store):
    waiting(store, 5)
    old = stage.about_to_write(lambda: admit(store, 3))
    assert admit(store, 1, began=1) == 1
    assert old.finish() == 0
    assert Job.objects.filter(hold="").count() == 1
