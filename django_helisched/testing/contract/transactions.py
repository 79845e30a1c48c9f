"""atomic and on_commit: all of it, or nothing."""

# ruff: noqa: S101

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django_helisched.jobs.job import State
from django_helisched.stores.base import EVERY_QUEUE
from django_helisched.testing.contract.factories import (
    CALLBACK,
    all_jobs,
    enqueued,
    read,
    running,
    settled,
    state_of,
    success,
    undone,
)

if TYPE_CHECKING:
    import pytest

    from django_helisched.stores.base import JobStore


class TransactionContract:
    """The caller's transaction, and hooks on its end."""

    def test_a_job_exists_as_soon_as_its_transaction_commits(self, store: JobStore) -> None:
        with store.atomic():
            job = enqueued(store, args=[1])
        assert store.get(job.id) == job

    def test_a_rollback_leaves_neither_job_nor_arguments(self, store: JobStore) -> None:
        with undone(store):
            job = enqueued(store, args=[1])
        assert store.get(job.id) is None
        assert store.args_of(job.id)["args"] == []

    def test_a_rollback_undoes_a_settlement_with_its_attempt_and_callback(self, store: JobStore) -> None:
        claim = running(store, on_complete=CALLBACK)
        before = all_jobs(store)
        with undone(store):
            settled(store, claim, success())
        assert all_jobs(store) == before
        assert len(store.attempts_of(claim.id)) == 0
        assert state_of(store, claim.id) == State.IN_PROGRESS

    def test_a_body_and_its_settlement_commit_together(self, store: JobStore) -> None:
        claim = running(store)
        with store.atomic():
            effect = enqueued(store, parent_id=claim.id, parent_fence=claim.fence)
            settled(store, claim, success())
        assert state_of(store, effect.id) == State.PENDING
        assert state_of(store, claim.id) == State.SUCCESS

    def test_an_inner_block_is_undone_alone(self, store: JobStore) -> None:
        with store.atomic():
            outer = enqueued(store)
            with undone(store):
                inner = enqueued(store)
            after = enqueued(store)
        assert [store.get(job.id) is None for job in (outer, inner, after)] == [False, True, False]

    def test_the_end_of_an_inner_block_does_not_save_it_from_the_outer(self, store: JobStore) -> None:
        with undone(store), store.atomic():
            job = enqueued(store)
        assert store.get(job.id) is None

    def test_a_pause_is_undone_with_its_transaction(self, store: JobStore) -> None:
        job = enqueued(store)
        with undone(store):
            store.pause_queue(job.queue)
        assert store.next_due_at(EVERY_QUEUE) == job.next_run_at

    def test_a_hook_runs_after_the_commit(self, store: JobStore) -> None:
        seen: list[str] = []
        with store.atomic():
            with store.atomic():
                store.on_commit(lambda: seen.append("hook"))
            seen.append("body")
        assert seen == ["body", "hook"]

    def test_a_hook_runs_at_once_where_no_transaction_is_open(self, store: JobStore) -> None:
        seen: list[str] = []
        store.on_commit(lambda: seen.append("hook"))
        assert seen == ["hook"]

    def test_a_hook_given_twice_runs_once(self, store: JobStore) -> None:
        seen: list[str] = []
        hook = _Hook(seen)
        with store.atomic():
            store.on_commit(hook)
            store.on_commit(hook)
        assert seen == ["hook"]

    def test_a_rollback_drops_the_hook(self, store: JobStore) -> None:
        seen: list[str] = []
        with undone(store):
            store.on_commit(lambda: seen.append("hook"))
        assert seen == []

    def test_the_rollback_of_an_inner_block_drops_its_hooks_alone(self, store: JobStore) -> None:
        seen: list[str] = []
        with store.atomic():
            store.on_commit(lambda: seen.append("outer"))
            with undone(store):
                store.on_commit(lambda: seen.append("inner"))
        assert seen == ["outer"]

    def test_a_raising_hook_is_logged_and_the_next_one_runs(
        self, store: JobStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        seen: list[str] = []
        with caplog.at_level(logging.ERROR), store.atomic():
            job = enqueued(store)
            store.on_commit(_raise)
            store.on_commit(lambda: seen.append("next"))
        assert seen == ["next"]
        assert [record.exc_info is not None for record in caplog.records] == [True]
        assert read(store, job.id).state == State.PENDING

    def test_a_hook_may_use_the_store(self, store: JobStore) -> None:
        def hook() -> None:
            enqueued(store, name="hook")

        with store.atomic():
            store.on_commit(hook)
        assert [job.name for job in all_jobs(store)] == ["hook"]

    def test_an_ordinary_error_is_not_transient(self, store: JobStore) -> None:
        assert not store.is_transient(ValueError("deadlock"))


class _Hook:
    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def __call__(self) -> None:
        self._seen.append("hook")


def _raise() -> None:
    raise RuntimeError("the hook's own fault")
