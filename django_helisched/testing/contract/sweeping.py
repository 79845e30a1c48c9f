"""sweep: what nobody holds any more."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from django_helisched.jobs.job import FailureReason, State
from django_helisched.jobs.leases import confirm_write
from django_helisched.testing.contract.factories import (
    CALLBACK,
    GRACE,
    LEASE,
    SECOND,
    START,
    TICK,
    all_jobs,
    callbacks,
    claimed,
    enqueued,
    lapse,
    last_attempt,
    loss,
    only,
    outcomes,
    read,
    retry,
    running,
    settled,
    state_of,
    swept,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django_helisched.jobs.leases import Sighting
    from django_helisched.stores.base import JobStore, SweepAnswer
    from django_helisched.testing.clock import ManualClock


class SweepContract:
    """Lapsed leases, and when they are taken back."""

    def test_a_lapsed_lease_is_a_chore(self, store: JobStore, clock: ManualClock) -> None:
        running(store)
        clock.advance(LEASE + TICK)
        assert store.has_chores()

    def test_a_job_whose_time_is_over_is_a_chore(self, store: JobStore, clock: ManualClock) -> None:
        enqueued(store, expires_at=START + SECOND)
        clock.advance(1 + TICK.total_seconds())
        assert store.has_chores()

    def test_a_job_of_an_unknown_function_is_a_chore(self, store: JobStore) -> None:
        enqueued(store)
        store.hold_unknown([claimed(store)])
        assert store.has_chores()

    def test_a_job_that_is_out_under_a_limit_is_a_chore(self, store: JobStore) -> None:
        enqueued(store, limit_key="k")
        assert store.admit() == 1
        assert store.has_chores()

    def test_a_paused_queue_is_a_chore(self, store: JobStore) -> None:
        store.pause_queue("mail")
        assert store.has_chores()

    def test_a_lease_is_held_at_its_last_instant(self, store: JobStore, clock: ManualClock) -> None:
        running(store)
        clock.advance(LEASE)
        answer = _sweep(store)
        assert (len(answer.swept), len(answer.seen)) == (0, 0)

    def test_the_first_look_at_a_lapse_only_remembers_it(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        clock.advance(LEASE + TICK)
        before = read(store, claim.id)
        answer = _sweep(store)
        assert answer.swept == ()
        [sighting] = answer.seen.values()
        assert (sighting.lapse.job_id, sighting.lapse.fence) == (claim.id, claim.fence)
        assert (sighting.lapse.lease_expires_at, sighting.seen_at) == (START + LEASE, clock.now())
        assert read(store, claim.id) == before

    def test_the_second_look_takes_back_a_third_of_the_lease_later(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        clock.advance(LEASE + TICK)
        seen = confirm_write(_sweep(store).seen)
        clock.advance(LEASE / 3 - TICK)
        early = _sweep(store, seen)
        assert early.swept == ()
        clock.advance(TICK)
        answer = _sweep(store, early.seen)
        assert [job.id for job, _ in answer.swept] == [claim.id]
        assert claim.id not in answer.seen

    def test_a_look_after_which_nothing_could_be_written_proves_nothing(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        running(store)
        clock.advance(LEASE + TICK)
        seen = _sweep(store).seen
        clock.advance(LEASE - TICK)
        assert _sweep(store, seen).swept == ()

    def test_a_lease_that_was_renewed_in_between_is_seen_for_the_first_time_again(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        claim = running(store)
        clock.advance(LEASE + TICK)
        seen = confirm_write(_sweep(store).seen)
        store.heartbeat([claim], lease=TICK)
        clock.advance(LEASE / 2)
        answer = _sweep(store, seen)
        assert answer.swept == ()
        assert answer.seen[claim.id].seen_at == clock.now()

    def test_a_lease_that_ended_more_than_a_lease_ago_is_taken_back_at_first_sight(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        claim = running(store)
        clock.advance(2 * LEASE)
        assert _sweep(store).swept == ()
        clock.advance(TICK)
        assert [job.id for job, _ in _sweep(store).swept] == [claim.id]

    def test_a_lost_job_goes_back_with_one_loss_and_no_failure(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        before = read(store, claim.id)
        answer = swept(store, clock)
        [(job, outcome)] = answer.swept
        assert job == before
        assert outcome == loss(before)
        assert outcome.retry_in is not None
        assert read(store, claim.id) == replace(
            before,
            state=State.PENDING,
            next_run_at=clock.now() + outcome.retry_in,
            losses=1,
            attempt_count=1,
            lease_holder=None,
            lease_expires_at=None,
            last_error=outcome.report.line,
        )

    def test_the_attempt_names_the_worker_that_was_lost(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        swept(store, clock)
        attempt = last_attempt(store, claim.id)
        assert (attempt.number, attempt.outcome, attempt.worker_id) == (1, "lost", "worker-1")
        assert (attempt.started_at, attempt.ended_at) == (START, clock.now())
        assert "worker-1" in attempt.error

    def test_losses_add_up_to_a_final_one(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, on_complete=CALLBACK)
        for _ in range(2):
            swept(store, clock)
            assert state_of(store, claim.id) == State.PENDING
            clock.advance(600)
            claimed(store)
        swept(store, clock)
        row = read(store, claim.id)
        assert (row.state, row.failure_reason) == (State.FAILED, FailureReason.LOST)
        assert (row.losses, row.attempts, row.completed_at) == (3, 0, clock.now())
        assert outcomes(store, claim.id) == [(1, "lost"), (2, "lost"), (3, "lost")]
        assert [kwargs["result"]["kind"] for kwargs in callbacks(store)] == ["failed"]

    def test_an_at_most_once_job_whose_body_began_fails_as_lost(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, at_most_once=True, on_complete=CALLBACK)
        store.start(claim)
        swept(store, clock)
        row = read(store, claim.id)
        assert (row.state, row.failure_reason, row.losses) == (State.FAILED, FailureReason.LOST, 1)
        assert outcomes(store, claim.id) == [(1, "lost")]
        assert len(callbacks(store)) == 1

    def test_an_at_most_once_job_whose_body_never_began_goes_back_for_nothing(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        claim = running(store, at_most_once=True, on_complete=CALLBACK)
        swept(store, clock)
        row = read(store, claim.id)
        assert (row.state, row.next_run_at, row.losses, row.attempt_count) == (State.PENDING, clock.now(), 0, 0)
        assert outcomes(store, claim.id) == []
        assert claimed(store).id == claim.id

    def test_a_lost_job_that_was_asked_to_cancel_ends_canceled(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, on_complete=CALLBACK)
        store.cancel(claim.id)
        swept(store, clock)
        row = read(store, claim.id)
        assert (row.state, row.completed_at, row.lease_holder) == (State.CANCELED, clock.now(), None)
        assert outcomes(store, claim.id) == [(1, "lost")]
        assert [kwargs["result"] for kwargs in callbacks(store)] == [{"kind": "canceled"}]

    def test_a_lost_parent_that_ends_canceled_takes_its_children_along(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        parent = running(store)
        child = enqueued(store, parent_id=parent.id)
        store.cancel(parent.id)
        store.requeue(child.id)
        swept(store, clock)
        assert state_of(store, child.id) == State.CANCELED

    def test_parent_and_child_lost_together_both_end_canceled(self, store: JobStore, clock: ManualClock) -> None:
        parent = running(store)
        child = running(store, parent_id=parent.id)
        store.cancel(parent.id)
        assert read(store, child.id).cancel_requested_at is not None
        swept(store, clock)
        assert [state_of(store, claim.id) for claim in (parent, child)] == [State.CANCELED] * 2

    def test_a_child_lost_together_with_its_canceled_parent_ends_canceled_though_nobody_asked_it(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        parent = running(store)
        store.cancel(parent.id)
        child = enqueued(store, parent_id=parent.id, queue="child")
        store.requeue(child.id)
        claimed(store, queues=only("child"))
        swept(store, clock)
        assert [state_of(store, job_id) for job_id in (parent.id, child.id)] == [State.CANCELED] * 2

    def test_a_loss_that_is_to_run_again_calls_nobody_back(self, store: JobStore, clock: ManualClock) -> None:
        running(store, on_complete=CALLBACK)
        swept(store, clock)
        assert callbacks(store) == []

    def test_every_lapsed_lease_is_taken_back_and_no_other(self, store: JobStore, clock: ManualClock) -> None:
        lost = [running(store) for _ in range(3)]
        settled(store, running(store), retry(600 * SECOND))
        enqueued(store, due_at=START + GRACE)
        lapse(clock)
        held = running(store)
        answer = _sweep(store)
        assert sorted(job.id for job, _ in answer.swept) == sorted(claim.id for claim in lost)
        assert state_of(store, held.id) == State.IN_PROGRESS

    def test_a_second_sweep_finds_nothing(self, store: JobStore, clock: ManualClock) -> None:
        running(store)
        swept(store, clock)
        before = all_jobs(store)
        answer = _sweep(store)
        assert (answer.swept, dict(answer.seen)) == ((), {})
        assert all_jobs(store) == before

    def test_a_lease_may_be_of_any_length(self, store: JobStore, clock: ManualClock) -> None:
        short, long = timedelta(milliseconds=90), timedelta(days=2)
        job = enqueued(store)
        claimed(store, lease=short)
        clock.advance(2 * short + TICK)
        assert len(store.sweep({}, lease=short, decide_loss=loss).swept) == 1
        clock.advance(600)
        claim = claimed(store, lease=long)
        assert (claim.id, claim.lease_expires_at) == (job.id, clock.now() + long)


def _sweep(store: JobStore, seen: Mapping[UUID, Sighting] | None = None) -> SweepAnswer:
    return store.sweep(seen or {}, lease=LEASE, decide_loss=loss)
