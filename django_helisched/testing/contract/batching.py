"""Batches: who may add to one, and the one end that completes it."""

# ruff: noqa: S101

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from django_helisched.exceptions import BatchClosed, LeaseLost
from django_helisched.jobs.batch import BatchSnapshot, NewBatch
from django_helisched.jobs.ids import first_id, uuid7
from django_helisched.jobs.job import FailureReason, State, Trigger
from django_helisched.jobs.retention import Cut
from django_helisched.testing.contract.factories import (
    CALLBACK,
    GRACE,
    SECOND,
    START,
    all_jobs,
    canceled,
    completions,
    enqueued,
    failure,
    new_job,
    read,
    retry,
    running,
    settled,
    state_of,
    success,
    swept,
    undone,
)

if TYPE_CHECKING:
    from uuid import UUID

    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


def opened(store: JobStore, **fields: Any) -> UUID:
    """Store a batch with a callback, and return its id."""
    given = {"id": uuid7(), "created_at": store.now(), "on_complete": CALLBACK, **fields}
    return store.create_batch(NewBatch(**given)).id


def read_batch(store: JobStore, batch_id: UUID) -> BatchSnapshot:
    """Return a batch that must be there."""
    batch = store.get_batch(batch_id)
    assert batch is not None
    return batch


def is_complete(store: JobStore, batch_id: UUID) -> bool:
    """Tell whether a batch is complete, and that it has called back exactly then."""
    complete = read_batch(store, batch_id).completed_at is not None
    assert [told["batch_id"] for told in completions(store)].count(str(batch_id)) == complete
    return complete


class BatchContract:
    """JobStore.create_batch, close_batch, get_batch, and what the ends of jobs do."""

    def test_a_batch_comes_back_as_it_was_stored(self, store: JobStore) -> None:
        new = NewBatch(
            id=uuid7(), created_at=START, name="import", space="s", on_complete=CALLBACK, context={"c": [None]}
        )
        stored = store.create_batch(new)
        assert (stored.name, stored.space, stored.context, stored.closed_at) == ("import", "s", {"c": [None]}, None)
        assert store.get_batch(new.id) == stored
        assert store.get_batch(uuid7()) is None

    def test_the_last_end_after_the_close_completes_it_once(self, store: JobStore, clock: ManualClock) -> None:
        batch = opened(store, context={"file": 7}, space="acme")
        claims = [running(store, batch_id=batch) for _ in range(3)]
        settled(store, claims[0], success())
        assert store.close_batch(batch)
        assert not store.close_batch(batch)
        settled(store, claims[1], failure())
        assert not is_complete(store, batch)
        assert (read_batch(store, batch).open, read_batch(store, batch).succeeded) == (1, 1)
        clock.advance(1)
        settled(store, claims[2], canceled())
        assert is_complete(store, batch)
        found = read_batch(store, batch)
        assert (found.completed_at, found.closed_at) == (START + SECOND, START)
        assert (found.open, found.succeeded, found.failed, found.canceled) == (0, 1, 1, 1)
        counts = {"success": 1, "failed": 1, "canceled": 1}
        assert completions(store) == [{"batch_id": str(batch), "context": {"file": 7}, "counts": counts}]
        [callback] = [job for job in all_jobs(store) if job.trigger == Trigger.ON_COMPLETE]
        assert (callback.fn_path, callback.space, callback.parent_id) == (CALLBACK, "acme", None)
        assert (callback.batch_id, callback.due_at) == (None, START + SECOND)

    def test_the_close_completes_it_where_all_have_ended_or_there_were_none(self, store: JobStore) -> None:
        ended, empty = opened(store), opened(store, on_complete="")
        settled(store, running(store, batch_id=ended), success())
        assert not is_complete(store, ended)
        store.close_batch(ended)
        assert is_complete(store, ended)
        store.close_batch(empty)
        assert read_batch(store, empty).completed_at == START
        assert len(completions(store)) == 1

    def test_a_retry_does_not_end_a_job(self, store: JobStore, clock: ManualClock) -> None:
        batch = opened(store)
        claim = running(store, batch_id=batch)
        store.close_batch(batch)
        settled(store, claim, retry())
        assert not is_complete(store, batch)
        clock.advance(1)
        [again] = store.claim(worker_id="w", limit=1, lease=GRACE)
        settled(store, again, success())
        assert is_complete(store, batch)

    def test_two_last_ends_in_one_settlement_call_back_once(self, store: JobStore) -> None:
        from django_helisched.stores.base import Settlement

        batch = opened(store)
        claims = [running(store, batch_id=batch) for _ in range(2)]
        store.close_batch(batch)
        store.settle([Settlement(claim=claim, outcome=success(), started_at=START) for claim in claims])
        assert is_complete(store, batch)

    def test_cancel_expiry_sweep_and_release_end_jobs_too(self, store: JobStore, clock: ManualClock) -> None:
        batches = [opened(store) for _ in range(5)]
        pending = enqueued(store, batch_id=batches[0])
        late = enqueued(store, batch_id=batches[1], expires_at=START + SECOND, due_at=START + SECOND)
        lost = running(store, batch_id=batches[2], at_most_once=True, max_failures=1)
        store.start(lost)
        asked = running(store, batch_id=batches[3])
        forced = running(store, batch_id=batches[4])
        for batch in batches:
            store.close_batch(batch)
        store.cancel(pending.id)
        assert is_complete(store, batches[0])
        store.cancel(asked.id)
        assert not is_complete(store, batches[3])
        store.release([asked])
        assert is_complete(store, batches[3])
        store.cancel(forced.id, force=True)
        assert is_complete(store, batches[4])
        swept(store, clock)
        assert read(store, lost.id).failure_reason == FailureReason.LOST
        assert is_complete(store, batches[2])
        assert not is_complete(store, batches[1])
        store.expire(unknown_grace=GRACE)
        assert read(store, late.id).failure_reason == FailureReason.EXPIRED
        assert is_complete(store, batches[1])

    def test_a_family_that_is_canceled_completes_its_batches(self, store: JobStore) -> None:
        batch = opened(store)
        root = enqueued(store)
        for _ in range(2):
            enqueued(store, parent_id=root.id, batch_id=batch)
        store.close_batch(batch)
        store.cancel(root.id)
        assert is_complete(store, batch)
        assert read_batch(store, batch).canceled == 2

    def test_a_closed_batch_takes_jobs_from_its_own_running_ones_only(self, store: JobStore) -> None:
        batch = opened(store)
        inside, outside = running(store, batch_id=batch), running(store)
        store.close_batch(batch)
        child = {"parent_id": inside.id, "parent_fence": inside.fence, "batch_id": batch}
        grown = enqueued(store, **child)
        for given in ({}, {"parent_id": outside.id, "parent_fence": outside.fence}, {"parent_id": inside.id}):
            with pytest.raises(BatchClosed, match="is closed"):
                store.enqueue([new_job(store, batch_id=batch, **given)])
        settled(store, inside, success())
        assert not is_complete(store, batch)
        with pytest.raises(LeaseLost):
            store.enqueue([new_job(store, **child)])
        store.cancel(grown.id)
        assert is_complete(store, batch)
        with pytest.raises(BatchClosed, match="is complete"):
            store.enqueue([new_job(store, batch_id=batch)])
        with pytest.raises(BatchClosed, match="is not there"):
            store.enqueue([new_job(store, batch_id=uuid7())])

    def test_a_refusal_leaves_the_callers_transaction_usable(self, store: JobStore) -> None:
        batch = opened(store)
        store.close_batch(batch)
        with store.atomic():
            job = enqueued(store)
            with pytest.raises(BatchClosed):
                store.enqueue([new_job(store, batch_id=batch)])
            enqueued(store)
        assert state_of(store, job.id) == State.PENDING

    def test_nothing_is_stored_of_many_where_one_batch_is_closed(self, store: JobStore) -> None:
        free, closed = opened(store), opened(store)
        store.close_batch(closed)
        with pytest.raises(BatchClosed):
            store.enqueue([new_job(store), new_job(store, batch_id=free), new_job(store, batch_id=closed)])
        assert [job for job in all_jobs(store) if job.trigger != Trigger.ON_COMPLETE] == []

    def test_a_job_born_canceled_counts(self, store: JobStore) -> None:
        batch = opened(store)
        parent = enqueued(store)
        store.cancel(parent.id)
        assert enqueued(store, parent_id=parent.id, batch_id=batch).state == State.CANCELED
        store.close_batch(batch)
        assert is_complete(store, batch)
        assert read_batch(store, batch).canceled == 1

    def test_a_requeue_holds_up_an_open_batch_and_changes_nothing_about_a_complete_one(self, store: JobStore) -> None:
        batch = opened(store)
        first, second = running(store, batch_id=batch), running(store, batch_id=batch)
        store.close_batch(batch)
        settled(store, first, failure())
        store.requeue(first.id)
        settled(store, second, success())
        assert not is_complete(store, batch)
        store.cancel(first.id)
        assert is_complete(store, batch)
        before = read_batch(store, batch)
        assert store.requeue(first.id)
        store.cancel(first.id)
        assert read_batch(store, batch) == before
        assert is_complete(store, batch)

    def test_a_batch_and_its_completion_are_undone_with_the_callers_transaction(self, store: JobStore) -> None:
        batch = opened(store)
        claim = running(store, batch_id=batch)
        with undone(store):
            gone = opened(store)
            store.close_batch(batch)
            settled(store, claim, success())
            assert is_complete(store, batch)
        assert store.get_batch(gone) is None
        assert (state_of(store, claim.id), read_batch(store, batch).closed_at) == (State.IN_PROGRESS, None)
        assert not is_complete(store, batch)

    def test_jobs_of_an_open_batch_are_kept_and_a_batch_goes_after_its_jobs(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        batch = opened(store, id=first_id(store.now()))
        settled(store, running(store, id=first_id(store.now()), batch_id=batch), success())
        clock.advance(3600)
        now = store.now()
        cut = Cut(state=State.SUCCESS, before=first_id(now), ended_before=now, surplus=None, keys_since=now)
        assert store.prune(cut).count == 0
        store.close_batch(batch)
        clock.advance(1)
        assert store.prune_batches(store.now()).count == 0
        assert store.prune(cut).count == 1
        assert store.prune_batches(store.now()).count == 1
        assert store.get_batch(batch) is None


__all__ = ["BatchContract", "is_complete", "opened", "read_batch"]
