"""Batches: whoever ends, adds or closes at the same time, the callback comes once, and after the last end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from django_helisched.exceptions import BatchClosed
from django_helisched.jobs.job import State
from django_helisched.models import Batch, Job
from django_helisched.testing.contract.batching import is_complete, opened, read_batch
from django_helisched.testing.contract.factories import LEASE, enqueued, lapse, loss, new_job, running, settled, success
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from tests.races.stage import Stage


@pytest.fixture
def batch(store):
    return opened(store)


def test_of_two_that_end_the_last_two_jobs_at_once_the_second_calls_back(stage: Stage, store, batch):
    first, second = running(store, batch_id=batch), running(store, batch_id=batch)
    store.close_batch(batch)
    one = stage.holds_open(lambda: settled(store, first, success()))
    other = stage.enter(lambda: settled(store, second, success())).waits()
    assert not is_complete(store, batch)
    one.finish()
    other.result()
    assert is_complete(store, batch)
    assert read_batch(store, batch).succeeded == 2


def test_where_one_of_the_last_two_rolls_back_the_batch_stays_open(stage: Stage, store, batch):
    first, second = running(store, batch_id=batch), running(store, batch_id=batch)
    store.close_batch(batch)
    one = stage.holds_open(lambda: settled(store, first, success()))
    other = stage.enter(lambda: settled(store, second, success())).waits()
    one.break_off()
    other.result()
    assert not is_complete(store, batch)
    settled(store, first, success())
    assert is_complete(store, batch)


def test_a_settlement_and_a_cancel_that_end_the_last_two(stage: Stage, store, batch):
    claim, pending = running(store, batch_id=batch), enqueued(store, batch_id=batch)
    store.close_batch(batch)
    settle = stage.holds_open(lambda: settled(store, claim, success()))
    cancel = stage.enter(lambda: store.cancel(pending.id)).waits()
    settle.finish()
    assert cancel.result() is True
    assert is_complete(store, batch)


def test_a_sweep_and_a_settlement_that_end_the_last_two(stage: Stage, store, batch, clock):
    dead = running(store, batch_id=batch, at_most_once=True, max_failures=1)
    store.start(dead)
    lapse(clock)
    alive = running(store, batch_id=batch)
    store.close_batch(batch)
    sweep = stage.holds_open(lambda: store.sweep({}, lease=LEASE, decide_loss=loss))
    settle = stage.enter(lambda: settled(store, alive, success())).waits()
    sweep.finish()
    settle.result()
    assert is_complete(store, batch)
    assert (read_batch(store, batch).succeeded, read_batch(store, batch).failed) == (1, 1)


def test_a_close_waits_for_the_end_of_the_last_job(stage: Stage, store, batch):
    claim = running(store, batch_id=batch)
    settle = stage.holds_open(lambda: settled(store, claim, success()))
    close = stage.enter(lambda: store.close_batch(batch)).waits()
    settle.finish()
    assert close.result() is True
    assert is_complete(store, batch)


def test_a_close_waits_for_whoever_adds(stage: Stage, store, batch):
    add = stage.holds_open(lambda: store.enqueue([new_job(store, batch_id=batch)]))
    close = stage.enter(lambda: store.close_batch(batch)).waits()
    [added] = add.finish()
    assert close.result() is True
    assert not is_complete(store, batch)
    store.cancel(added.job.id)
    assert is_complete(store, batch)


def test_whoever_adds_while_it_is_being_closed_is_refused(stage: Stage, store, batch):
    close = stage.holds_open(lambda: store.close_batch(batch))
    add = stage.enter(lambda: store.enqueue([new_job(store, batch_id=batch)])).waits()
    assert close.finish() is True
    with pytest.raises(BatchClosed):
        add.result()
    assert Job.objects.filter(batch_id=batch).count() == 0


def test_two_that_add_do_not_wait_for_one_another(stage: Stage, store, batch):
    first = stage.holds_open(lambda: store.enqueue([new_job(store, batch_id=batch)]))
    second = stage.enter(lambda: store.enqueue([new_job(store, batch_id=batch)]))
    if not has_one_writer():
        second.result()
    first.finish()
    second.result()
    assert Job.objects.filter(batch_id=batch).count() == 2


def test_a_job_that_lets_its_batch_grow_holds_up_nobody_elses_end(stage: Stage, store, batch):
    inside, beside = running(store, batch_id=batch), running(store, batch_id=batch)
    store.close_batch(batch)
    child = new_job(store, batch_id=batch, parent_id=inside.id, parent_fence=inside.fence)
    grow = stage.holds_open(lambda: store.enqueue([child]))
    settle = stage.enter(lambda: settled(store, beside, success()))
    if not has_one_writer():
        settle.result()
    grow.finish()
    settle.result()
    settled(store, inside, success())
    assert not is_complete(store, batch)
    store.cancel(child.id)
    assert is_complete(store, batch)
    assert Batch.objects.get().canceled == 1
    assert Job.objects.get(pk=child.id).state == State.CANCELED
