"""A worker that is late, and a sweep that takes its job back: one of them ends the attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.jobs.job import State
from django_helisched.stores.base import SettleAnswer, SweepAnswer
from django_helisched.testing.contract.factories import (
    CALLBACK,
    LEASE,
    callbacks,
    claimed,
    lapse,
    loss,
    outcomes,
    read,
    running,
    settled,
    state_of,
    success,
)
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.stores.orm import OrmJobStore
    from tests.races.stage import Stage

DONE, LOST = SettleAnswer.DONE, SettleAnswer.LOST


def sweeping(store: OrmJobStore) -> Callable[[], SweepAnswer]:
    return lambda: store.sweep({}, lease=LEASE, decide_loss=loss)


def test_what_was_settled_after_a_sweep_saw_it_lapsed_is_not_taken_back(stage: Stage, store, clock):
    claim = running(store, on_complete=CALLBACK)
    lapse(clock)
    sweep = stage.about_to_write(sweeping(store))
    assert settled(store, claim, success()) is DONE
    assert sweep.finish().swept == ()
    assert (state_of(store, claim.id), outcomes(store, claim.id)) == (State.SUCCESS, [(1, "success")])
    assert len(callbacks(store)) == 1


def test_a_settlement_that_comes_after_the_sweep_is_lost(stage: Stage, store, clock):
    claim = running(store, on_complete=CALLBACK)
    settle = stage.about_to_write(lambda: settled(store, claim, success()))
    lapse(clock)
    assert len(sweeping(store)().swept) == 1
    assert settle.finish() is LOST
    row = read(store, claim.id)
    assert (row.state, row.losses, outcomes(store, claim.id)) == (State.PENDING, 1, [(1, "lost")])
    assert callbacks(store) == []


def test_a_sweep_passes_over_a_job_whose_settlement_is_on_its_way(stage: Stage, store, clock):
    claim = running(store)
    lapse(clock)
    settle = stage.holds_open(lambda: settled(store, claim, success()))
    sweep = stage.enter(sweeping(store))
    if has_one_writer():
        sweep.waits()
        settle.go_on()
    assert sweep.result().swept == ()
    assert settle.finish() is DONE
    assert outcomes(store, claim.id) == [(1, "success")]


def test_a_settlement_waits_for_a_sweep_and_is_lost(stage: Stage, store, clock):
    claim = running(store, on_complete=CALLBACK)
    lapse(clock)
    sweep = stage.holds_open(sweeping(store))
    settle = stage.enter(lambda: settled(store, claim, success())).waits()
    assert len(sweep.finish().swept) == 1
    assert settle.result() is LOST
    assert outcomes(store, claim.id) == [(1, "lost")]
    assert callbacks(store) == []


def test_a_settlement_outlives_a_sweep_that_is_undone(stage: Stage, store, clock):
    claim = running(store)
    lapse(clock)
    sweep = stage.holds_open(sweeping(store))
    settle = stage.enter(lambda: settled(store, claim, success())).waits()
    sweep.break_off()
    assert settle.result() is DONE
    assert outcomes(store, claim.id) == [(1, "success")]


def test_a_lease_that_is_renewed_after_a_sweep_saw_it_lapsed_is_not_taken_back(stage: Stage, store, clock):
    claim = running(store)
    lapse(clock)
    sweep = stage.about_to_write(sweeping(store))
    store.heartbeat([claim], lease=LEASE)
    assert sweep.finish().swept == ()
    assert settled(store, claim, success()) is DONE
    assert outcomes(store, claim.id) == [(1, "success")]


def test_a_heartbeat_that_meets_a_sweep_learns_of_the_loss_at_the_next_beat(stage: Stage, store, clock):
    claim = running(store)
    lapse(clock)
    sweep = stage.holds_open(sweeping(store))
    beat = stage.enter(lambda: store.heartbeat([claim], lease=LEASE))
    if has_one_writer():
        beat.waits()
        sweep.go_on()
        assert beat.result().lost == {claim.id}
        return
    # The row is only locked: whether it is lost, nobody knows yet.
    assert beat.result().lost == frozenset()
    sweep.finish()
    assert store.heartbeat([claim], lease=LEASE).lost == {claim.id}


def test_a_sweep_that_comes_late_leaves_the_next_claim_alone(stage: Stage, store, clock):
    claim = running(store)
    lapse(clock)
    late = stage.about_to_write(sweeping(store))
    sweeping(store)()
    clock.advance(LEASE)
    again = claimed(store)
    assert (again.id, again.fence) == (claim.id, claim.fence + 1)
    assert late.finish().swept == ()
    assert settled(store, again, success()) is DONE
    assert outcomes(store, claim.id) == [(1, "lost"), (2, "success")]


def test_two_sweeps_that_saw_the_same_lapse_count_one_loss(stage: Stage, store, clock):
    claim = running(store)
    lapse(clock)
    first, second = (stage.about_to_write(sweeping(store)) for _ in range(2))
    first.go_on()
    second.go_on()
    assert sorted(len(sweep.result().swept) for sweep in (first, second)) == [0, 1]
    row = read(store, claim.id)
    assert (row.losses, row.attempt_count, outcomes(store, claim.id)) == (1, 1, [(1, "lost")])


def test_the_last_loss_calls_back_once_however_many_sweep(stage: Stage, store, clock):
    claim = running(store, on_complete=CALLBACK, at_most_once=True)
    assert store.start(claim)
    lapse(clock)
    first = stage.holds_open(sweeping(store))
    second = stage.enter(sweeping(store))
    if has_one_writer():
        second.waits()
        first.go_on()
    assert second.result().swept == ()
    assert len(first.finish().swept) == 1
    assert (state_of(store, claim.id), len(callbacks(store))) == (State.FAILED, 1)
