"""An operator's word, and an attempt that ends in the same moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.jobs.job import State
from django_helisched.stores.base import SettleAnswer
from django_helisched.testing.contract.factories import (
    CALLBACK,
    LEASE,
    callbacks,
    canceled,
    claimed,
    enqueued,
    failure,
    only,
    outcomes,
    read,
    retry,
    running,
    settled,
    state_of,
    success,
)
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from tests.races.stage import Stage

DONE, ASKED, LOST = SettleAnswer.DONE, SettleAnswer.CANCEL_REQUESTED, SettleAnswer.LOST


def results(store) -> list[str]:
    return [made["result"]["kind"] for made in callbacks(store)]


def test_a_cancel_that_comes_just_before_the_settlement_wins(stage: Stage, store):
    claim = running(store, on_complete=CALLBACK)
    settle = stage.about_to_write(lambda: settled(store, claim, success()))
    assert store.cancel(claim.id)
    assert settle.finish() is ASKED
    assert (state_of(store, claim.id), outcomes(store, claim.id)) == (State.IN_PROGRESS, [])
    assert settled(store, claim, canceled()) is DONE
    assert results(store) == ["canceled"]


def test_a_cancel_waits_for_a_settlement_and_changes_nothing(stage: Stage, store):
    claim = running(store, on_complete=CALLBACK)
    child = enqueued(store, parent_id=claim.id)
    settle = stage.holds_open(lambda: settled(store, claim, success()))
    cancel = stage.enter(lambda: store.cancel(claim.id)).waits()
    assert settle.finish() is DONE
    assert cancel.result() is False
    assert (state_of(store, claim.id), state_of(store, child.id)) == (State.SUCCESS, State.PENDING)
    assert results(store) == ["success"]


def test_a_cancel_that_waited_for_a_retry_cancels_the_pending_job(stage: Stage, store):
    claim = running(store, on_complete=CALLBACK)
    settle = stage.holds_open(lambda: settled(store, claim, retry()))
    cancel = stage.enter(lambda: store.cancel(claim.id)).waits()
    assert settle.finish() is DONE
    assert cancel.result() is True
    assert (state_of(store, claim.id), outcomes(store, claim.id)) == (State.CANCELED, [(1, "failed")])
    assert results(store) == ["canceled"]


def test_a_settlement_waits_for_a_cancel_and_is_asked_to_decide_anew(stage: Stage, store):
    claim = running(store)
    cancel = stage.holds_open(lambda: store.cancel(claim.id))
    settle = stage.enter(lambda: settled(store, claim, success())).waits()
    assert cancel.finish() is True
    assert settle.result() is ASKED
    assert state_of(store, claim.id) == State.IN_PROGRESS


def test_a_settlement_that_waited_for_a_cancel_which_is_undone_counts(stage: Stage, store):
    claim = running(store)
    cancel = stage.holds_open(lambda: store.cancel(claim.id))
    settle = stage.enter(lambda: settled(store, claim, success())).waits()
    cancel.break_off()
    assert settle.result() is DONE
    assert state_of(store, claim.id) == State.SUCCESS


def test_a_settlement_waits_for_a_forced_cancel_and_is_lost(stage: Stage, store):
    claim = running(store, on_complete=CALLBACK)
    cancel = stage.holds_open(lambda: store.cancel(claim.id, force=True))
    settle = stage.enter(lambda: settled(store, claim, success())).waits()
    assert cancel.finish() is True
    assert settle.result() is LOST
    row = read(store, claim.id)
    assert (row.state, row.fence) == (State.CANCELED, claim.fence + 1)
    assert (outcomes(store, claim.id), results(store)) == ([(1, "canceled")], ["canceled"])


def test_of_two_cancels_the_second_repeats_the_request(stage: Stage, store, clock):
    claim = running(store)
    asked_at = clock.now()
    first = stage.holds_open(lambda: store.cancel(claim.id))
    clock.advance(1)
    second = stage.enter(lambda: store.cancel(claim.id)).waits()
    assert (first.finish(), second.result()) == (True, True)
    assert read(store, claim.id).cancel_requested_at == asked_at


def test_a_pending_job_is_canceled_by_one_of_two(stage: Stage, store):
    job = enqueued(store, on_complete=CALLBACK)
    first = stage.holds_open(lambda: store.cancel(job.id))
    second = stage.enter(lambda: store.cancel(job.id)).waits()
    assert (first.finish(), second.result()) == (True, False)
    assert results(store) == ["canceled"]


def test_a_requeue_waits_for_the_end_and_puts_the_job_back(stage: Stage, store):
    claim = running(store, on_complete=CALLBACK)
    settle = stage.holds_open(lambda: settled(store, claim, failure()))
    requeue = stage.enter(lambda: store.requeue(claim.id)).waits()
    assert settle.finish() is DONE
    assert requeue.result() is True
    row = read(store, claim.id)
    assert (row.state, row.attempts, row.attempt_count) == (State.PENDING, 0, 1)
    assert settled(store, claimed(store, queues=only(row.queue)), success()) is DONE
    assert outcomes(store, claim.id) == [(1, "failed"), (2, "success")]
    assert results(store) == ["failed", "success"]


def test_a_requeue_that_waited_for_a_retry_changes_nothing(stage: Stage, store):
    claim = running(store)
    settle = stage.holds_open(lambda: settled(store, claim, retry()))
    requeue = stage.enter(lambda: store.requeue(claim.id)).waits()
    settle.finish()
    after = read(store, claim.id)
    assert requeue.result() is False
    assert read(store, claim.id) == after


def test_a_requeue_of_a_job_whose_end_is_undone_changes_nothing(stage: Stage, store):
    claim = running(store)
    settle = stage.holds_open(lambda: settled(store, claim, success()))
    requeue = stage.enter(lambda: store.requeue(claim.id)).waits()
    settle.break_off()
    assert requeue.result() is False
    assert state_of(store, claim.id) == State.IN_PROGRESS


def test_of_two_requeues_one_is_done(stage: Stage, store):
    claim = running(store)
    settled(store, claim, success())
    first = stage.holds_open(lambda: store.requeue(claim.id))
    second = stage.enter(lambda: store.requeue(claim.id)).waits()
    assert (first.finish(), second.result()) == (True, False)


def test_a_settlement_that_slept_through_cancel_requeue_and_claim_is_lost(stage: Stage, store):
    claim = running(store, on_complete=CALLBACK)
    settle = stage.about_to_write(lambda: settled(store, claim, success("old")))
    store.cancel(claim.id, force=True)
    store.requeue(claim.id)
    again = claimed(store, queues=only(claim.queue))
    assert settle.finish() is LOST
    assert settled(store, again, success("new")) is DONE
    assert [attempt.result for attempt in store.attempts_of(claim.id)] == [None, "new"]
    assert results(store) == ["canceled", "success"]


def test_a_claim_passes_over_a_job_that_is_being_put_back(stage: Stage, store):
    claim = running(store)
    settled(store, claim, success())
    requeue = stage.holds_open(lambda: store.requeue(claim.id))
    taking = stage.enter(lambda: store.claim(worker_id="w", limit=1, lease=LEASE))
    if has_one_writer():
        requeue.go_on()
    taking.result()
    assert requeue.finish() is True
    taken = [*taking.result(), *store.claim(worker_id="w", limit=1, lease=LEASE)]
    assert [one.id for one in taken] == [claim.id]
