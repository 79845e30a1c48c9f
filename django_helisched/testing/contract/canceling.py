"""cancel: the operator's end of a job and of everything below it."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State
from django_helisched.testing.contract.factories import (
    CALLBACK,
    LEASE,
    SECOND,
    START,
    all_jobs,
    callbacks,
    canceled,
    claimed,
    enqueued,
    failure,
    last_attempt,
    new_job,
    outcomes,
    read,
    running,
    settled,
    state_of,
    success,
)

if TYPE_CHECKING:
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock

CHAIN = 300  # deep enough to find a walk that calls itself for each generation of a longer one


class CancelContract:
    """Cancel, with and without force, of one job and of families."""

    def test_a_pending_job_is_canceled_at_once(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store, due_at=START + 60 * SECOND)
        clock.advance(1)
        assert store.cancel(job.id)
        assert store.get(job.id) == replace(job, state=State.CANCELED, completed_at=START + SECOND)
        assert outcomes(store, job.id) == []
        clock.advance(60)
        assert store.claim(worker_id="w", limit=1, lease=LEASE) == []

    def test_a_held_job_can_be_canceled(self, store: JobStore) -> None:
        job = enqueued(store)
        store.hold_unknown([claimed(store)])
        assert store.cancel(job.id)
        row = read(store, job.id)
        assert (row.state, row.hold, row.held_at) == (State.CANCELED, "", None)
        assert store.unhold_known([job.fn_path]) == 0

    def test_a_running_job_is_asked_and_goes_on(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, on_complete=CALLBACK)
        before = read(store, claim.id)
        clock.advance(1)
        assert store.cancel(claim.id)
        assert read(store, claim.id) == replace(before, cancel_requested_at=START + SECOND)
        assert callbacks(store) == []

    def test_a_repeated_request_is_true_and_keeps_the_first_instant(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        store.cancel(claim.id)
        before = read(store, claim.id)
        clock.advance(1)
        assert store.cancel(claim.id)
        assert read(store, claim.id) == before

    def test_force_ends_a_running_job_at_once_and_voids_its_fence(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, on_complete=CALLBACK)
        before = read(store, claim.id)
        clock.advance(1)
        assert store.cancel(claim.id, force=True)
        assert read(store, claim.id) == replace(
            before,
            state=State.CANCELED,
            completed_at=START + SECOND,
            cancel_requested_at=START + SECOND,
            lease_holder=None,
            lease_expires_at=None,
            fence=claim.fence + 1,
            attempt_count=1,
        )
        attempt = last_attempt(store, claim.id)
        assert (attempt.number, attempt.outcome, attempt.worker_id) == (1, "canceled", "worker-1")
        assert (attempt.started_at, attempt.ended_at) == (START, START + SECOND)
        assert [kwargs["result"] for kwargs in callbacks(store)] == [{"kind": "canceled"}]

    def test_force_after_a_request_keeps_the_instant_of_the_request(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        store.cancel(claim.id)
        clock.advance(1)
        assert store.cancel(claim.id, force=True)
        row = read(store, claim.id)
        assert (row.cancel_requested_at, row.completed_at) == (START, START + SECOND)

    def test_force_on_a_pending_job_is_a_plain_cancel(self, store: JobStore) -> None:
        job = enqueued(store)
        assert store.cancel(job.id, force=True)
        assert store.get(job.id) == replace(job, state=State.CANCELED, completed_at=START)
        assert outcomes(store, job.id) == []

    def test_a_terminal_job_stays_as_it_is_and_so_do_its_children(self, store: JobStore) -> None:
        for outcome in (success(), failure(), canceled()):
            claim = running(store, on_complete=CALLBACK)
            settled(store, claim, outcome)
            child = enqueued(store, parent_id=claim.id)
            store.requeue(child.id)
            before = all_jobs(store)
            assert not store.cancel(claim.id)
            assert not store.cancel(claim.id, force=True)
            assert all_jobs(store) == before

    def test_an_unknown_job_cannot_be_canceled(self, store: JobStore) -> None:
        assert not store.cancel(uuid7())
        assert not store.cancel(uuid7(), force=True)

    def test_a_canceled_pending_job_calls_back_once(self, store: JobStore) -> None:
        job = enqueued(store, on_complete=CALLBACK, context=[1], space="acme")
        store.cancel(job.id)
        store.cancel(job.id)
        assert callbacks(store) == [{"job_id": str(job.id), "context": [1], "result": {"kind": "canceled"}}]
        made = all_jobs(store)[-1]
        assert (made.state, made.parent_id, made.space) == (State.PENDING, None, "acme")

    def test_the_callback_of_a_canceled_job_has_what_was_resolved_when_it_was_enqueued(self, store: JobStore) -> None:
        resolved = {"kind": "action", "queue": "mail", "priority": 7, "max_failures": 9, "timeout": 2.5}
        job = enqueued(store, on_complete=CALLBACK, options={"on_complete": resolved})
        store.cancel(job.id)
        made = all_jobs(store)[-1]
        assert (made.kind, made.queue, made.priority, made.max_failures) == ("action", "mail", 7, 9)
        assert made.timeout == 2.5 * SECOND

    def test_cancel_reaches_every_descendant(self, store: JobStore) -> None:
        parent = enqueued(store)
        children = [enqueued(store, parent_id=parent.id, on_complete=CALLBACK) for _ in range(2)]
        grandchildren = [enqueued(store, parent_id=child.id) for child in children]
        stranger = enqueued(store)
        assert store.cancel(parent.id)
        for job in (*children, *grandchildren):
            assert store.get(job.id) == replace(job, state=State.CANCELED, completed_at=START)
        assert store.get(stranger.id) == stranger
        assert len(callbacks(store)) == 2

    def test_running_descendants_are_asked_also_when_the_job_itself_is_forced(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        parent = running(store)
        child = running(store, parent_id=parent.id)
        clock.advance(1)
        store.cancel(parent.id, force=True)
        row = read(store, child.id)
        assert (row.state, row.cancel_requested_at, row.fence) == (
            State.IN_PROGRESS,
            START + SECOND,
            child.fence,
        )

    def test_a_descendant_that_was_asked_before_keeps_its_instant(self, store: JobStore, clock: ManualClock) -> None:
        parent = enqueued(store, due_at=START + SECOND)
        child = running(store, parent_id=parent.id)
        store.cancel(child.id)
        clock.advance(0.5)
        store.cancel(parent.id)
        assert read(store, child.id).cancel_requested_at == START

    def test_cancel_goes_through_finished_descendants(self, store: JobStore) -> None:
        parent = enqueued(store, due_at=START + SECOND)
        children = [running(store, parent_id=parent.id) for _ in range(3)]
        for child, outcome in zip(children, (success(), failure(), canceled()), strict=True):
            settled(store, child, outcome)
        finished = [read(store, child.id) for child in children]
        grandchildren = [enqueued(store, parent_id=child.id) for child in children]
        store.requeue(grandchildren[2].id)
        assert store.cancel(parent.id)
        assert [state_of(store, job.id) for job in grandchildren] == [State.CANCELED] * 3
        assert [read(store, child.id) for child in children] == finished

    def test_a_request_reaches_descendants_at_once(self, store: JobStore) -> None:
        parent = running(store)
        child = enqueued(store, parent_id=parent.id)
        store.cancel(parent.id)
        assert state_of(store, child.id) == State.CANCELED

    def test_a_repeated_request_reaches_descendants_again(self, store: JobStore) -> None:
        parent = running(store)
        child = enqueued(store, parent_id=parent.id)
        store.cancel(parent.id)
        store.requeue(child.id)
        store.cancel(parent.id)
        assert state_of(store, child.id) == State.CANCELED

    def test_a_child_does_not_take_its_parent_along(self, store: JobStore) -> None:
        parent = enqueued(store)
        child = enqueued(store, parent_id=parent.id)
        store.cancel(child.id)
        assert store.get(parent.id) == parent

    def test_a_family_that_bites_its_own_tail_is_canceled_once(self, store: JobStore) -> None:
        one, two = uuid7(), uuid7()
        store.enqueue(
            [
                new_job(store, id=one, parent_id=two, on_complete=CALLBACK),
                new_job(store, id=two, parent_id=one, on_complete=CALLBACK),
            ]
        )
        assert store.cancel(one)
        assert [state_of(store, job_id) for job_id in (one, two)] == [State.CANCELED] * 2
        assert len(callbacks(store)) == 2

    def test_a_long_line_of_descendants_is_canceled(self, store: JobStore) -> None:
        ids = [uuid7() for _ in range(CHAIN)]
        parents = [None, *ids]
        store.enqueue([new_job(store, id=own, parent_id=parent) for own, parent in zip(ids, parents, strict=False)])
        store.cancel(ids[0])
        assert {state_of(store, job_id) for job_id in ids} == {State.CANCELED}

    def test_the_callback_of_a_canceled_job_is_no_descendant(self, store: JobStore) -> None:
        parent = running(store)
        child = enqueued(store, parent_id=parent.id, on_complete=CALLBACK)
        store.cancel(child.id)
        store.cancel(parent.id, force=True)
        assert all_jobs(store)[-1].state == State.PENDING
