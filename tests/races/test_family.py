"""A child that is enqueued while its parent, or somebody above, is canceled: none is left to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from django_helisched import exceptions
from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.jobs.job import State
from django_helisched.models import Job
from django_helisched.stores.base import SettleAnswer
from django_helisched.testing.contract.factories import (
    LEASE,
    canceled,
    claimed,
    enqueued,
    lapse,
    loss,
    new_job,
    only,
    outcomes,
    read,
    running,
    settled,
    state_of,
    success,
)
from tests.app.jobs import note, tell
from tests.app.models import Ledger
from tests.races import bodies
from tests.races.bodies import stop_and_enqueue, write_and_enqueue
from tests.races.stage import has_one_writer, pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.jobs.job import ClaimedJob, JobSnapshot, NewJob
    from django_helisched.stores.orm import OrmCronStore, OrmJobStore
    from tests.races.stage import Stage

DONE, ASKED, LOST = SettleAnswer.DONE, SettleAnswer.CANCEL_REQUESTED, SettleAnswer.LOST


@pytest.fixture
def driver(store: OrmJobStore, crons: OrmCronStore) -> Driver:
    return Driver(store, crons, DriverConfig(worker_id="driver", lease=LEASE), seats=InlineSeats(1))


def child_of(store: OrmJobStore, parent: ClaimedJob) -> NewJob:
    return new_job(store, parent_id=parent.id, parent_fence=parent.fence)


def enqueueing(store: OrmJobStore, parent: ClaimedJob) -> Callable[[], JobSnapshot]:
    job = child_of(store, parent)
    return lambda: store.enqueue([job])[0].job


def children(body) -> list[str]:
    return list(Job.objects.filter(fn_path=body.path).values_list("state", flat=True))


def test_a_child_that_slips_past_a_cancel_is_canceled_when_its_parent_settles(stage: Stage, store):
    parent = running(store)
    enqueue = stage.about_to_write(enqueueing(store, parent))
    assert store.cancel(parent.id)
    child = enqueue.finish()
    assert state_of(store, child.id) == State.PENDING
    assert settled(store, parent, success()) is ASKED
    assert settled(store, parent, canceled()) is DONE
    assert state_of(store, child.id) == State.CANCELED


def test_a_child_that_slips_past_a_cancel_is_canceled_when_its_parent_is_swept(stage: Stage, store, clock):
    parent = running(store)
    enqueue = stage.about_to_write(enqueueing(store, parent))
    assert store.cancel(parent.id)
    child = enqueue.finish()
    lapse(clock)
    store.sweep({}, lease=LEASE, decide_loss=loss)
    assert [state_of(store, job_id) for job_id in (parent.id, child.id)] == [State.CANCELED] * 2


def test_a_child_enqueued_beside_an_uncommitted_cancel_is_canceled_in_the_end(stage: Stage, store):
    parent = running(store)
    cancel = stage.holds_open(lambda: store.cancel(parent.id))
    enqueue = stage.enter(enqueueing(store, parent))
    if has_one_writer():
        enqueue.waits()
        cancel.go_on()
    child = enqueue.result()
    assert cancel.finish() is True
    assert settled(store, parent, canceled()) is DONE
    assert state_of(store, child.id) == State.CANCELED


def test_a_child_in_an_open_transaction_dies_with_it_when_the_parent_is_canceled(stage: Stage, store):
    parent = running(store)

    def work() -> SettleAnswer:
        with store.atomic():
            enqueueing(store, parent)()
            pause()
            answer = settled(store, parent, success())
            if answer is not DONE:
                raise exceptions.JobCanceled
            return answer

    mutation = stage.enter(work).stands()
    cancel = stage.enter(lambda: store.cancel(parent.id))
    if has_one_writer():
        # The only writer goes first, and the operator is told that he came too late.
        cancel.waits()
        assert mutation.finish() is DONE
        assert cancel.result() is False
        return
    assert cancel.result() is True
    with pytest.raises(exceptions.JobCanceled):
        mutation.finish()
    assert Job.objects.filter(parent_id=parent.id).count() == 0


def test_a_mutation_that_is_canceled_in_its_middle_leaves_neither_row_nor_child(stage: Stage, driver, store):
    job = write_and_enqueue.enqueue("m")
    tick = stage.enter(driver.tick).stands()
    cancel = stage.enter(lambda: store.cancel(job.pk))
    if has_one_writer():
        cancel.waits()
        tick.finish()
        assert cancel.result() is False
        assert (state_of(store, job.pk), Ledger.objects.count(), children(note)) == ("success", 1, ["success"])
        return
    assert cancel.result() is True
    tick.finish()
    assert (state_of(store, job.pk), outcomes(store, job.pk)) == (State.CANCELED, [(1, "success")])
    assert (Ledger.objects.count(), children(note)) == (0, [])


def test_what_a_canceled_action_enqueues_is_born_canceled(stage: Stage, driver, store):
    job = stop_and_enqueue.enqueue("a")
    tick = stage.enter(driver.tick).stands()
    assert store.cancel(job.pk)
    tick.finish()
    assert (state_of(store, job.pk), children(tell)) == (State.CANCELED, [State.CANCELED])
    assert bodies.runs == [State.CANCELED]


def test_an_action_whose_job_was_taken_away_enqueues_nothing(stage: Stage, driver, store):
    job = stop_and_enqueue.enqueue("a")
    tick = stage.enter(driver.tick).stands()
    store.cancel(job.pk, force=True)
    tick.finish()
    assert (state_of(store, job.pk), children(tell)) == (State.CANCELED, [])
    assert outcomes(store, job.pk) == [(1, "canceled")]


def test_a_grandchild_that_commits_while_the_cancel_waits_for_its_parent_is_canceled(stage: Stage, store):
    root = running(store)
    parent = running(store, parent_id=root.id)
    made: list[JobSnapshot] = []

    def end() -> SettleAnswer:
        made.append(enqueueing(store, parent)())
        return settled(store, parent, success())

    mutation = stage.holds_open(end)
    cancel = stage.enter(lambda: store.cancel(root.id)).waits()
    assert mutation.finish() is DONE
    assert cancel.result() is True
    assert [state_of(store, job_id) for job_id in (parent.id, made[0].id)] == [State.SUCCESS, State.CANCELED]


def test_two_cancels_that_meet_in_one_family_end_it_once(stage: Stage, store):
    root = enqueued(store)
    middle = enqueued(store, parent_id=root.id)
    leaf = enqueued(store, parent_id=middle.id)
    lower = stage.holds_open(lambda: store.cancel(middle.id))
    upper = stage.enter(lambda: store.cancel(root.id)).waits()
    assert (lower.finish(), upper.result()) == (True, True)
    assert [read(store, job.id).state for job in (root, middle, leaf)] == [State.CANCELED] * 3


def test_a_pending_child_that_is_claimed_beside_a_cancel_is_asked_to_stop(stage: Stage, store):
    root = running(store)
    child = enqueued(store, parent_id=root.id, queue="child")
    claim = stage.holds_open(lambda: claimed(store, queues=only("child")))
    cancel = stage.enter(lambda: store.cancel(root.id)).waits()
    taken = claim.finish()
    assert cancel.result() is True
    assert store.heartbeat([taken], lease=LEASE).cancel_requested == {child.id}


def test_a_sweep_leaves_a_canceled_job_whose_child_is_locked_for_the_next_round(stage: Stage, store, clock):
    parent = running(store)
    child = enqueued(store, parent_id=parent.id, queue="child")
    other = running(store)
    store.cancel(parent.id)
    store.requeue(child.id)
    lapse(clock)
    holder = stage.holds_open(lambda: Job.objects.filter(pk=child.id).update(name="held"))
    sweep = stage.enter(lambda: store.sweep({}, lease=LEASE, decide_loss=loss))
    if has_one_writer():
        sweep.waits()
        holder.go_on()
        assert {job.id for job, _ in sweep.result().swept} == {parent.id, other.id}
        return
    assert {job.id for job, _ in sweep.result().swept} == {other.id}
    assert state_of(store, parent.id) == State.IN_PROGRESS
    holder.finish()
    assert {job.id for job, _ in store.sweep({}, lease=LEASE, decide_loss=loss).swept} == {parent.id}
    assert [state_of(store, job_id) for job_id in (parent.id, child.id)] == [State.CANCELED] * 2
