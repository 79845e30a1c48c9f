"""settle: what is refused, because the claim is lost or the job was asked to cancel."""

# ruff: noqa: S101

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.jobs.job import State
from django_helisched.jobs.outcome import AttemptOutcome, Outcome
from django_helisched.stores.base import SettleAnswer
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
    only,
    outcomes,
    read,
    retry,
    running,
    settled,
    snooze,
    state_of,
    success,
    swept,
)

if TYPE_CHECKING:
    from django_helisched.jobs.job import ClaimedJob
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock

DONE, ASKED, LOST = SettleAnswer.DONE, SettleAnswer.CANCEL_REQUESTED, SettleAnswer.LOST


class RefuseContract:
    """Endings that come too late, and ends of what was canceled."""

    def test_a_second_settlement_is_lost_and_changes_nothing(self, store: JobStore, clock: ManualClock) -> None:
        for first in (success(), failure(), canceled(), retry()):
            claim = running(store, on_complete=CALLBACK)
            settled(store, claim, first)
            clock.advance(0.001)
            for second in (success(), failure(), canceled(), retry(), snooze()):
                _is_lost(store, claim, second)

    def test_settle_after_the_lease_was_swept_changes_nothing(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, on_complete=CALLBACK)
        swept(store, clock)
        for outcome in (success(), failure(), canceled(), retry()):
            _is_lost(store, claim, outcome)

    def test_settle_under_an_older_fence_of_the_same_worker_changes_nothing(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        stale = running(store, on_complete=CALLBACK)
        store.release([stale])
        fresh = claimed(store, queues=only(stale.queue))
        assert fresh.lease_holder == stale.lease_holder
        _is_lost(store, stale, success())
        assert settled(store, fresh, success()) is DONE

    def test_a_released_claim_settles_nothing(self, store: JobStore) -> None:
        claim = running(store, on_complete=CALLBACK)
        store.release([claim])
        _is_lost(store, claim, success())

    def test_a_lapsed_lease_that_nobody_swept_settles(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        clock.advance(100 * LEASE)
        assert settled(store, claim, success()) is DONE

    def test_an_outcome_is_refused_while_a_cancel_request_stands(self, store: JobStore) -> None:
        for outcome in (success(), failure(), retry(), snooze()):
            claim = running(store, on_complete=CALLBACK)
            store.cancel(claim.id)
            before = all_jobs(store)
            assert settled(store, claim, outcome) is ASKED
            assert all_jobs(store) == before
            assert outcomes(store, claim.id) == []

    def test_a_job_asked_to_cancel_is_settled_as_canceled_and_its_attempt_tells_what_it_did(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        claim = running(store, on_complete=CALLBACK)
        store.cancel(claim.id)
        clock.advance(1)
        assert settled(store, claim, canceled(AttemptOutcome.SUCCESS, {"v": 1})) is DONE
        row = read(store, claim.id)
        assert (row.state, row.completed_at, row.failure_reason) == (State.CANCELED, START + SECOND, "")
        attempt = last_attempt(store, claim.id)
        assert (attempt.outcome, attempt.result) == ("success", {"v": 1})
        assert [kwargs["result"] for kwargs in callbacks(store)] == [{"kind": "canceled"}]

    def test_a_canceled_end_leaves_the_error_of_the_retry_before(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        settled(store, claim, retry(SECOND, "first"))
        clock.advance(SECOND)
        settled(store, claimed(store), canceled())
        assert read(store, claim.id).last_error == "first"

    def test_a_job_that_ends_canceled_takes_the_children_it_made_meanwhile_along(self, store: JobStore) -> None:
        claim = running(store)
        child = enqueued(store, parent_id=claim.id, on_complete=CALLBACK)
        grandchild = running(store, parent_id=child.id)
        assert settled(store, claim, canceled()) is DONE
        assert state_of(store, child.id) == State.CANCELED
        assert state_of(store, grandchild.id) == State.IN_PROGRESS
        assert read(store, grandchild.id).cancel_requested_at is not None
        assert len(callbacks(store)) == 1

    def test_success_and_failure_leave_the_children_alone(self, store: JobStore) -> None:
        for outcome in (success(), failure()):
            claim = running(store)
            child = enqueued(store, parent_id=claim.id)
            settled(store, claim, outcome)
            assert state_of(store, child.id) == State.PENDING


def _is_lost(store: JobStore, claim: ClaimedJob, outcome: Outcome) -> None:
    jobs, attempts = all_jobs(store), list(store.attempts_of(claim.id))
    assert settled(store, claim, outcome) is LOST
    assert all_jobs(store) == jobs
    assert list(store.attempts_of(claim.id)) == attempts
