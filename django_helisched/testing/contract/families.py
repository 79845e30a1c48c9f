"""Parents and children: who may enqueue, and whose children are canceled at birth."""

# ruff: noqa: S101

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from django_helisched.exceptions import LeaseLost
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State
from django_helisched.testing.contract.factories import (
    CALLBACK,
    LEASE,
    all_jobs,
    callbacks,
    canceled,
    claimed,
    enqueued,
    failure,
    new_job,
    only,
    read,
    running,
    settled,
    state_of,
    success,
    swept,
)

if TYPE_CHECKING:
    from django_helisched.jobs.job import ClaimedJob, NewJob
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


class FamilyContract:
    """Enqueueing children."""

    def test_a_child_names_its_parent(self, store: JobStore) -> None:
        parent = enqueued(store)
        child = enqueued(store, parent_id=parent.id)
        assert (child.parent_id, child.state) == (parent.id, State.PENDING)

    def test_a_running_parent_has_living_children(self, store: JobStore) -> None:
        parent = running(store)
        [result] = store.enqueue([child_of(store, parent)])
        assert (result.created, result.job.state) == (True, State.PENDING)

    def test_an_unknown_parent_hinders_nobody(self, store: JobStore) -> None:
        assert enqueued(store, parent_id=uuid7()).state == State.PENDING

    def test_a_finished_parent_named_by_hand_has_living_children(self, store: JobStore) -> None:
        for outcome in (success(), failure()):
            parent = running(store)
            settled(store, parent, outcome)
            assert enqueued(store, parent_id=parent.id).state == State.PENDING

    def test_a_child_of_a_canceled_parent_is_born_canceled(self, store: JobStore, clock: ManualClock) -> None:
        parent = enqueued(store)
        store.cancel(parent.id)
        clock.advance(1)
        [result] = store.enqueue([new_job(store, parent_id=parent.id, idempotency_key="k", args=[1])])
        child = result.job
        assert result.created
        assert (child.state, child.completed_at, child.failure_reason) == (State.CANCELED, clock.now(), "")
        assert (child.attempt_count, child.fence, child.started_at) == (0, 0, None)
        assert store.get(child.id) == child
        assert store.args_of(child.id)["args"] == [1]

    def test_a_child_of_a_parent_asked_to_cancel_is_born_canceled(self, store: JobStore) -> None:
        parent = running(store)
        store.cancel(parent.id)
        [result] = store.enqueue([child_of(store, parent)])
        assert (result.created, result.job.state) == (True, State.CANCELED)

    def test_a_job_born_canceled_is_never_claimed(self, store: JobStore) -> None:
        parent = running(store)
        store.cancel(parent.id)
        store.enqueue([child_of(store, parent)])
        assert store.claim(worker_id="w", limit=64, lease=LEASE) == []

    def test_a_job_born_canceled_takes_no_key(self, store: JobStore) -> None:
        parent = enqueued(store)
        store.cancel(parent.id)
        enqueued(store, parent_id=parent.id, idempotency_key="k")
        [other] = store.enqueue([new_job(store, idempotency_key="k")])
        assert other.created

    def test_a_taken_key_wins_over_a_canceled_parent(self, store: JobStore) -> None:
        older = enqueued(store, idempotency_key="k")
        parent = enqueued(store)
        store.cancel(parent.id)
        [result] = store.enqueue([new_job(store, parent_id=parent.id, idempotency_key="k")])
        assert (result.created, result.job) == (False, older)

    def test_a_job_born_canceled_calls_nobody_back(self, store: JobStore) -> None:
        parent = enqueued(store)
        store.cancel(parent.id)
        enqueued(store, parent_id=parent.id, on_complete=CALLBACK)
        assert callbacks(store) == []

    def test_a_requeued_job_that_was_born_canceled_calls_back_at_its_end(self, store: JobStore) -> None:
        parent = enqueued(store)
        store.cancel(parent.id)
        child = enqueued(store, parent_id=parent.id, on_complete=CALLBACK)
        assert store.requeue(child.id)
        settled(store, claimed(store), success(1))
        assert [kwargs["result"] for kwargs in callbacks(store)] == [{"kind": "success", "value": 1}]

    def test_a_requeued_job_that_was_born_canceled_holds_its_key(self, store: JobStore) -> None:
        parent = enqueued(store)
        store.cancel(parent.id)
        child = enqueued(store, parent_id=parent.id, idempotency_key="k")
        assert store.requeue(child.id)
        [again] = store.enqueue([new_job(store, idempotency_key="k")])
        assert (again.created, again.job.id) == (False, child.id)

    def test_a_job_born_canceled_cannot_be_requeued_over_a_taken_key(self, store: JobStore) -> None:
        parent = enqueued(store)
        store.cancel(parent.id)
        child = enqueued(store, parent_id=parent.id, idempotency_key="k")
        enqueued(store, idempotency_key="k")
        assert not store.requeue(child.id)
        assert state_of(store, child.id) == State.CANCELED

    def test_a_worker_that_lost_its_lease_enqueues_nothing(self, store: JobStore, clock: ManualClock) -> None:
        stale = running(store)
        swept(store, clock)
        _refuses(store, child_of(store, stale))

    def test_a_worker_whose_job_another_one_runs_enqueues_nothing(self, store: JobStore, clock: ManualClock) -> None:
        stale = running(store)
        swept(store, clock)
        clock.advance(600)
        fresh = claimed(store, queues=only(stale.queue), worker_id="worker-2")
        assert fresh.id == stale.id
        _refuses(store, child_of(store, stale))
        assert store.enqueue([child_of(store, fresh)])[0].job.state == State.PENDING

    def test_a_stale_worker_is_refused_also_when_its_job_is_asked_to_cancel(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        stale = running(store)
        swept(store, clock)
        clock.advance(600)
        claimed(store, queues=only(stale.queue), worker_id="worker-2")
        store.cancel(stale.id)
        _refuses(store, child_of(store, stale))

    def test_a_job_canceled_by_force_enqueues_nothing(self, store: JobStore) -> None:
        parent = running(store)
        store.cancel(parent.id, force=True)
        _refuses(store, child_of(store, parent))

    def test_a_settled_job_enqueues_nothing(self, store: JobStore) -> None:
        for outcome in (success(), failure(), canceled()):
            parent = running(store)
            settled(store, parent, outcome)
            _refuses(store, child_of(store, parent))

    def test_a_released_job_enqueues_nothing(self, store: JobStore) -> None:
        parent = running(store)
        store.release([parent])
        _refuses(store, child_of(store, parent))

    def test_a_fence_without_its_job_is_stale(self, store: JobStore) -> None:
        _refuses(store, new_job(store, parent_id=uuid7(), parent_fence=1))

    def test_children_of_one_parent_are_judged_one_by_one(self, store: JobStore) -> None:
        parent = running(store)
        store.cancel(parent.id, force=True)
        by_hand = new_job(store, parent_id=parent.id)
        for batch in ([by_hand, child_of(store, parent)], [child_of(store, parent), by_hand]):
            with pytest.raises(LeaseLost):
                store.enqueue(batch)
        assert store.enqueue([by_hand])[0].job.state == State.CANCELED

    def test_one_stale_child_stores_none_of_its_call(self, store: JobStore) -> None:
        parent = running(store)
        store.cancel(parent.id, force=True)
        before = all_jobs(store)
        with pytest.raises(LeaseLost):
            store.enqueue([new_job(store), new_job(store, idempotency_key="k"), child_of(store, parent)])
        assert all_jobs(store) == before

    def test_a_refused_child_leaves_the_transaction_usable(self, store: JobStore) -> None:
        parent = running(store)
        store.cancel(parent.id, force=True)
        with store.atomic():
            with pytest.raises(LeaseLost):
                store.enqueue([child_of(store, parent)])
            after = enqueued(store)
        assert read(store, after.id).state == State.PENDING


def child_of(store: JobStore, parent: ClaimedJob) -> NewJob:
    """Return the child that the worker of ``parent`` enqueues."""
    return new_job(store, parent_id=parent.id, parent_fence=parent.fence)


def _refuses(store: JobStore, child: NewJob) -> None:
    with pytest.raises(LeaseLost):
        store.enqueue([child])
    assert store.get(child.id) is None
