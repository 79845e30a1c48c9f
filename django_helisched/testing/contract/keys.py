"""Idempotency keys: one row for one key, as long as it is taken."""

# ruff: noqa: S101

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.jobs.job import State, UniqueUntil
from django_helisched.testing.contract.factories import (
    GRACE,
    LEASE,
    SECOND,
    START,
    TICK,
    all_jobs,
    enqueued,
    failure,
    lapse,
    loss,
    new_job,
    read,
    retry,
    running,
    settled,
    state_of,
    success,
    undone,
)

if TYPE_CHECKING:
    from django_helisched.jobs.job import ClaimedJob
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


class KeyContract:
    """Who has a key, from when until when."""

    def test_a_taken_key_returns_the_older_job_unchanged(self, store: JobStore, clock: ManualClock) -> None:
        older = enqueued(store, idempotency_key="k", args=["A"])
        clock.advance(1)
        [again] = store.enqueue([new_job(store, idempotency_key="k", args=["B"], fn_path="shop.other", priority=9)])
        assert not again.created
        assert again.job == older == store.get(older.id)
        assert store.args_of(older.id)["args"] == ["A"]
        assert len(all_jobs(store)) == 1

    def test_a_key_stays_taken_when_its_job_is_over(self, store: JobStore) -> None:
        claim = running(store, idempotency_key="k")
        settled(store, claim, failure())
        [again] = store.enqueue([new_job(store, idempotency_key="k")])
        assert (again.created, again.job.id, again.job.state) == (False, claim.id, State.FAILED)

    def test_the_same_key_in_another_space_is_another_key(self, store: JobStore) -> None:
        keys = [("", "abc"), ("a", "bc"), ("ab", "c"), ("abc", "")]
        results = store.enqueue([new_job(store, space=space, idempotency_key=key) for space, key in keys])
        assert [result.created for result in results] == [True] * 4

    def test_keys_are_compared_byte_by_byte(self, store: JobStore) -> None:
        keys = ["k", "K", "k ", "ķ", "k\u0327", "ss", "ß"]
        results = store.enqueue([new_job(store, idempotency_key=key) for key in keys])
        assert [result.created for result in results] == [True] * len(keys)

    def test_one_key_twice_in_one_call_makes_one_job(self, store: JobStore) -> None:
        first, second = store.enqueue([new_job(store, idempotency_key="k"), new_job(store, idempotency_key="k")])
        assert (first.created, second.created) == (True, False)
        assert second.job == first.job

    def test_jobs_without_a_key_never_stand_for_one_another(self, store: JobStore) -> None:
        results = store.enqueue([new_job(store), new_job(store)])
        assert [result.created for result in results] == [True, True]

    def test_a_taken_key_leaves_the_transaction_usable(self, store: JobStore) -> None:
        enqueued(store, idempotency_key="k")
        with store.atomic():
            [again] = store.enqueue([new_job(store, idempotency_key="k")])
            after = enqueued(store, name="after")
        assert not again.created
        assert store.get(after.id) is not None

    def test_a_rolled_back_job_frees_its_key(self, store: JobStore) -> None:
        with undone(store):
            enqueued(store, idempotency_key="k")
        [again] = store.enqueue([new_job(store, idempotency_key="k")])
        assert again.created

    def test_a_key_until_the_end_is_taken_while_the_job_lives(self, store: JobStore, clock: ManualClock) -> None:
        claim = _passing(store)
        assert not _is_free(store)
        settled(store, claim, retry(SECOND))
        assert not _is_free(store)

    def test_success_frees_a_key_until_the_end(self, store: JobStore) -> None:
        settled(store, _passing(store), success())
        assert _is_free(store)

    def test_failure_frees_a_key_until_the_end(self, store: JobStore) -> None:
        settled(store, _passing(store), failure())
        assert _is_free(store)

    def test_cancel_frees_a_key_until_the_end(self, store: JobStore) -> None:
        job = enqueued(store, idempotency_key="k", unique_until=UniqueUntil.TERMINAL)
        store.cancel(job.id)
        assert _is_free(store)

    def test_cancel_by_force_frees_a_key_until_the_end(self, store: JobStore) -> None:
        store.cancel(_passing(store).id, force=True)
        assert _is_free(store)

    def test_the_release_of_a_canceled_claim_frees_a_key_until_the_end(self, store: JobStore) -> None:
        claim = _passing(store)
        store.cancel(claim.id)
        assert not _is_free(store)
        store.release([claim])
        assert _is_free(store)

    def test_a_final_loss_frees_a_key_until_the_end(self, store: JobStore, clock: ManualClock) -> None:
        claim = _passing(store, at_most_once=True)
        store.start(claim)
        lapse(clock)
        store.sweep({}, lease=LEASE, decide_loss=loss)
        assert _is_free(store)

    def test_expiry_frees_a_key_until_the_end(self, store: JobStore, clock: ManualClock) -> None:
        enqueued(store, idempotency_key="k", unique_until=UniqueUntil.TERMINAL, expires_at=START)
        clock.advance(TICK)
        store.expire(unknown_grace=GRACE)
        assert _is_free(store)

    def test_requeue_takes_the_freed_key_again(self, store: JobStore) -> None:
        claim = _passing(store)
        settled(store, claim, success())
        assert store.requeue(claim.id)
        [again] = store.enqueue([new_job(store, idempotency_key="k")])
        assert (again.created, again.job.id) == (False, claim.id)

    def test_requeue_is_refused_while_another_job_has_the_freed_key(self, store: JobStore) -> None:
        claim = _passing(store)
        settled(store, claim, success())
        before = read(store, claim.id)
        other = enqueued(store, idempotency_key="k")
        assert other.id != claim.id
        assert not store.requeue(claim.id)
        assert store.get(claim.id) == before

    def test_a_refused_requeue_leaves_the_transaction_usable(self, store: JobStore) -> None:
        claim = _passing(store)
        settled(store, claim, success())
        enqueued(store, idempotency_key="k")
        with store.atomic():
            assert not store.requeue(claim.id)
            after = enqueued(store)
        assert state_of(store, after.id) == State.PENDING

    def test_requeue_keeps_a_key_that_was_never_freed(self, store: JobStore) -> None:
        claim = running(store, idempotency_key="k")
        settled(store, claim, failure())
        assert store.requeue(claim.id)
        assert not store.enqueue([new_job(store, idempotency_key="k")])[0].created


def _passing(store: JobStore, **fields: object) -> ClaimedJob:
    return running(store, idempotency_key="k", unique_until=UniqueUntil.TERMINAL, **fields)


def _is_free(store: JobStore) -> bool:
    """Tell whether the key can be taken, and leave it as it was."""
    with undone(store):
        [result] = store.enqueue([new_job(store, idempotency_key="k")])
    return result.created
