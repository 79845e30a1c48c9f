"""requeue: the operator's second chance."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State
from django_helisched.testing.contract.factories import (
    CALLBACK,
    GRACE,
    SECOND,
    START,
    TICK,
    callbacks,
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
    swept,
)

if TYPE_CHECKING:
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


class RequeueContract:
    """From terminal back to pending; keys are in KeyContract."""

    def test_a_failed_job_is_pending_again_with_a_budget_as_new(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, args=[1])
        settled(store, claim, retry(SECOND))
        clock.advance(SECOND)
        settled(store, claimed(store), failure())
        before = read(store, claim.id)
        clock.advance(9)
        assert store.requeue(claim.id)
        assert read(store, claim.id) == replace(
            before,
            state=State.PENDING,
            failure_reason="",
            next_run_at=START + 10 * SECOND,
            attempts=0,
            losses=0,
            started_at=None,
            completed_at=None,
            last_error="",
        )
        assert outcomes(store, claim.id) == [(1, "failed"), (2, "failed")]
        assert list(claimed(store).args) == [1]

    def test_losses_restart_too(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        swept(store, clock)
        clock.advance(600)
        settled(store, claimed(store), failure())
        assert read(store, claim.id).losses == 1
        store.requeue(claim.id)
        assert read(store, claim.id).losses == 0

    def test_a_canceled_job_may_run_after_all(self, store: JobStore) -> None:
        job = enqueued(store)
        store.cancel(job.id)
        assert store.requeue(job.id)
        assert store.get(job.id) == job
        assert claimed(store).id == job.id

    def test_a_cancel_request_is_forgotten(self, store: JobStore) -> None:
        claim = running(store)
        store.cancel(claim.id)
        store.cancel(claim.id, force=True)
        assert store.requeue(claim.id)
        assert read(store, claim.id).cancel_requested_at is None
        assert settled(store, claimed(store), success()).name == "DONE"

    def test_a_successful_job_may_run_once_more(self, store: JobStore) -> None:
        claim = running(store)
        settled(store, claim, success())
        assert store.requeue(claim.id)
        assert claimed(store).attempt == 2

    def test_an_expired_job_gets_rid_of_its_expiry(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store, expires_at=START)
        clock.advance(TICK)
        store.expire(unknown_grace=GRACE)
        assert store.requeue(job.id)
        assert read(store, job.id).expires_at is None
        assert claimed(store).id == job.id

    def test_the_fence_goes_on_growing(self, store: JobStore) -> None:
        claim = running(store)
        store.cancel(claim.id, force=True)
        store.requeue(claim.id)
        assert claimed(store).fence == claim.fence + 2

    def test_an_ended_claim_does_not_hold_the_requeued_job(self, store: JobStore) -> None:
        claim = running(store)
        settled(store, claim, success())
        store.requeue(claim.id)
        assert settled(store, claim, success()).name == "LOST"
        claimed(store)
        assert settled(store, claim, success()).name == "LOST"
        assert state_of(store, claim.id) == State.IN_PROGRESS

    def test_a_second_end_calls_back_a_second_time(self, store: JobStore) -> None:
        claim = running(store, on_complete=CALLBACK)
        settled(store, claim, failure("E: x"))
        store.requeue(claim.id)
        settled(store, claimed(store, queues=only(claim.queue)), success(2))
        assert [kwargs["result"] for kwargs in callbacks(store)] == [
            {"kind": "failed", "error": "E: x"},
            {"kind": "success", "value": 2},
        ]

    def test_a_job_that_is_not_over_cannot_be_requeued(self, store: JobStore) -> None:
        pending, claim = enqueued(store, due_at=START + SECOND), running(store)
        for job_id in (pending.id, claim.id):
            before = store.get(job_id)
            assert not store.requeue(job_id)
            assert store.get(job_id) == before
        assert not store.requeue(uuid7())

    def test_a_second_requeue_finds_nothing_to_do(self, store: JobStore) -> None:
        claim = running(store)
        settled(store, claim, failure())
        assert [store.requeue(claim.id), store.requeue(claim.id)] == [True, False]

    def test_a_child_of_a_canceled_parent_may_be_requeued(self, store: JobStore) -> None:
        parent = enqueued(store)
        child = enqueued(store, parent_id=parent.id)
        store.cancel(parent.id)
        assert store.requeue(child.id)
        assert claimed(store).id == child.id
