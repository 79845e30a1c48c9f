"""What a worker does with its claims short of ending them: start, heartbeat, progress, release, hold."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Hold, State
from django_helisched.jobs.progress import ProgressReport, ProgressSnapshot
from django_helisched.testing.contract.factories import (
    CALLBACK,
    LEASE,
    SECOND,
    START,
    TICK,
    all_jobs,
    callbacks,
    claimed,
    enqueued,
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
    from collections.abc import Iterator

    from django_helisched.jobs.job import ClaimedJob, JobSnapshot
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


class HoldContract:
    """Holding a claim, and giving it back."""

    def test_a_heartbeat_renews_from_now_on_and_touches_nothing_else(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        before = read(store, claim.id)
        clock.advance(10)
        answer = store.heartbeat([claim], lease=LEASE)
        assert (answer.lost, answer.cancel_requested) == (frozenset(), frozenset())
        assert read(store, claim.id) == replace(before, lease_expires_at=START + 10 * SECOND + LEASE)

    def test_a_heartbeat_renews_many_at_once(self, store: JobStore, clock: ManualClock) -> None:
        claims = [running(store) for _ in range(50)]
        clock.advance(10)
        store.heartbeat(claims, lease=LEASE)
        renewed = {read(store, claim.id).lease_expires_at for claim in claims}
        assert renewed == {START + 10 * SECOND + LEASE}

    def test_a_heartbeat_without_claims_is_answered(self, store: JobStore) -> None:
        answer = store.heartbeat([], lease=LEASE)
        assert (answer.lost, answer.cancel_requested) == (frozenset(), frozenset())

    def test_a_lapsed_lease_that_nobody_swept_is_renewed(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        clock.advance(10 * LEASE)
        assert store.heartbeat([claim], lease=LEASE).lost == frozenset()
        assert read(store, claim.id).lease_expires_at == clock.now() + LEASE

    def test_a_heartbeat_tells_of_a_cancel_request_again_and_again(self, store: JobStore) -> None:
        asked, other = running(store), running(store)
        store.cancel(asked.id)
        for _ in range(2):
            answer = store.heartbeat([asked, other], lease=LEASE)
            assert (answer.lost, answer.cancel_requested) == (frozenset(), frozenset({asked.id}))

    def test_a_heartbeat_tells_which_claims_are_lost_and_renews_the_rest(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        for claim in _lost_claims(store, clock):
            before = store.get(claim.id)
            held = running(store)
            answer = store.heartbeat([claim, held], lease=2 * LEASE)
            assert (answer.lost, answer.cancel_requested) == (frozenset({claim.id}), frozenset())
            assert store.get(claim.id) == before
            assert read(store, held.id).lease_expires_at == clock.now() + 2 * LEASE

    def test_the_body_of_a_lost_claim_must_not_begin(self, store: JobStore, clock: ManualClock) -> None:
        for claim in _lost_claims(store, clock):
            before = store.get(claim.id)
            assert not store.start(claim)
            assert store.get(claim.id) == before

    def test_progress_is_taken_from_the_holder_only(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        assert store.progress([(claim, ProgressReport(done=1))]) == [True]
        late = ProgressReport(done=1, total=2, message="late")
        for lost in _lost_claims(store, clock):
            held_by_another = store.progress_of(lost.id)
            assert store.progress([(lost, late)]) == [False]
            assert store.progress_of(lost.id) == held_by_another

    def test_the_newest_progress_is_what_can_be_read(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        assert store.progress_of(claim.id) is None
        store.progress([(claim, ProgressReport(done=1))])
        assert store.progress_of(claim.id) == ProgressSnapshot(done=1, total=None, message="", updated_at=START)
        clock.advance(1)
        store.progress([(claim, ProgressReport(done=-(2**63) + 1, total=2**63 - 1, message="é" * 300))])
        assert store.progress_of(claim.id) == ProgressSnapshot(
            done=-(2**63) + 1, total=2**63 - 1, message="é" * 300, updated_at=START + SECOND
        )

    def test_progress_of_many_is_written_together(self, store: JobStore) -> None:
        first, second, released = running(store), running(store), running(store)
        store.release([released])
        reports = [(claim, ProgressReport(done=number)) for number, claim in enumerate([second, released, first])]
        assert store.progress(reports) == [True, False, True]
        assert [_done(store, claim) for claim in (first, second, released)] == [2, 0, None]
        assert store.progress([]) == []

    def test_progress_touches_nothing_of_the_job(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        before = store.get(claim.id)
        clock.advance(1)
        store.progress([(claim, ProgressReport(done=1))])
        assert store.get(claim.id) == before

    def test_progress_outlives_its_attempt_and_says_nothing_of_the_next_one(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        claim = running(store)
        store.progress([(claim, ProgressReport(done=1))])
        settled(store, claim, retry(SECOND))
        assert _done(store, claim) == 1
        clock.advance(SECOND)
        again = claimed(store)
        assert _done(store, again) is None
        store.progress([(again, ProgressReport(done=2))])
        settled(store, again, success())
        assert _done(store, again) == 2

    def test_progress_of_an_unknown_job_is_none(self, store: JobStore) -> None:
        assert store.progress_of(uuid7()) is None

    def test_a_released_job_is_as_if_it_had_not_been_claimed_but_for_the_fence(self, store: JobStore) -> None:
        job = enqueued(store)
        claim = claimed(store)
        assert store.release([claim]) == 1
        assert store.get(job.id) == replace(job, fence=1)
        assert outcomes(store, job.id) == []

    def test_a_released_job_can_be_claimed_at_once_any_number_of_times(self, store: JobStore) -> None:
        enqueued(store, max_failures=1)
        for _ in range(10):
            store.release([claimed(store)])
        claim = claimed(store)
        assert (claim.attempts, claim.losses, claim.attempt) == (0, 0, 1)

    def test_a_released_retry_keeps_its_budget_and_its_history(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        settled(store, claim, retry(SECOND))
        clock.advance(SECOND)
        store.release([claimed(store)])
        row = read(store, claim.id)
        assert (row.attempts, row.attempt_count, row.next_run_at) == (1, 1, START + SECOND)
        assert row.last_error == "ValueError: no"

    def test_a_release_counts_the_claims_that_were_still_held(self, store: JobStore, clock: ManualClock) -> None:
        lost = list(_lost_claims(store, clock))
        before = [store.get(claim.id) for claim in lost]
        assert store.release([*lost, running(store), running(store)]) == 2
        assert [store.get(claim.id) for claim in lost] == before
        assert store.release([]) == 0

    def test_the_release_of_a_job_asked_to_cancel_ends_it(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, on_complete=CALLBACK)
        store.cancel(claim.id)
        clock.advance(1)
        assert store.release([claim]) == 1
        row = read(store, claim.id)
        assert (row.state, row.completed_at, row.lease_holder) == (State.CANCELED, START + SECOND, None)
        assert outcomes(store, claim.id) == []
        assert [kwargs["result"] for kwargs in callbacks(store)] == [{"kind": "canceled"}]

    def test_the_release_of_a_job_asked_to_cancel_takes_its_children_along(self, store: JobStore) -> None:
        claim = running(store)
        child = enqueued(store, parent_id=claim.id)
        store.cancel(claim.id)
        store.requeue(child.id)
        store.release([claim])
        assert state_of(store, child.id) == State.CANCELED

    def test_an_unknown_function_is_held_until_somebody_knows_it(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store, fn_path="shop.gone")
        claim = claimed(store)
        clock.advance(1)
        assert store.hold_unknown([claim]) == 1
        held = _held(job, 1, hold=Hold.UNKNOWN_FUNCTION, held_at=START + SECOND)
        assert store.get(job.id) == held
        assert store.claim(worker_id="w", limit=9, lease=LEASE) == []
        assert store.next_due_at() is None
        assert store.unhold_known(["shop.other", "shop.gon", "SHOP.GONE"]) == 0
        assert store.unhold_known(["shop.other", "shop.gone"]) == 1
        assert store.get(job.id) == _held(job, 1)
        assert claimed(store).id == job.id

    def test_nothing_is_lifted_where_nothing_is_known(self, store: JobStore) -> None:
        enqueued(store)
        store.hold_unknown([claimed(store)])
        assert store.unhold_known([]) == 0

    def test_every_held_job_of_a_known_function_is_lifted(self, store: JobStore) -> None:
        claims = [running(store, fn_path=f"shop.f{number % 2}") for number in range(5)]
        assert store.hold_unknown(claims) == 5
        assert store.unhold_known({"shop.f0"}) == 3
        assert store.unhold_known({"shop.f0", "shop.f1"}) == 2

    def test_a_lost_claim_is_not_held_back(self, store: JobStore, clock: ManualClock) -> None:
        lost = list(_lost_claims(store, clock))
        before = [store.get(claim.id) for claim in lost]
        assert store.hold_unknown(lost) == 0
        assert [store.get(claim.id) for claim in lost] == before

    def test_an_unknown_function_whose_job_was_asked_to_cancel_ends_it(self, store: JobStore) -> None:
        claim = running(store, on_complete=CALLBACK)
        store.cancel(claim.id)
        assert store.hold_unknown([claim]) == 1
        row = read(store, claim.id)
        assert (row.state, row.hold, row.held_at) == (State.CANCELED, "", None)
        assert len(callbacks(store)) == 1

    def test_holding_makes_no_jobs_of_its_own(self, store: JobStore) -> None:
        claim = running(store, on_complete=CALLBACK)
        store.heartbeat([claim], lease=LEASE)
        store.hold_unknown([claim])
        store.unhold_known([claim.fn_path])
        assert len(all_jobs(store)) == 1


def _held(job: JobSnapshot, fence: int, **changes: object) -> JobSnapshot:
    return replace(job, fence=fence, **changes)  # type: ignore[arg-type]


def _done(store: JobStore, claim: ClaimedJob) -> int | None:
    found = store.progress_of(claim.id)
    return None if found is None else found.done


def _lost_claims(store: JobStore, clock: ManualClock) -> Iterator[ClaimedJob]:
    """Yield claims that no longer hold, one for each way to lose them."""
    for outcome in (success(), retry(SECOND)):
        claim = running(store)
        settled(store, claim, outcome)
        yield claim
    claim = running(store)
    store.release([claim])
    yield claim
    claim = running(store)
    store.cancel(claim.id, force=True)
    yield claim
    claim = running(store)
    yield replace(claim, fence=claim.fence + 1)
    yield replace(claim, id=uuid7())
    settled(store, claim, success())
    claim = running(store)
    swept(store, clock)
    yield claim
    clock.advance(600 * SECOND + TICK)
    [again] = [each for each in store.claim(worker_id="worker-2", limit=64, lease=LEASE) if each.id == claim.id]
    assert again.fence == claim.fence + 1
    yield claim
