"""claim: who gets which job, once."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from django_helisched.jobs.job import ClaimedJob, JobSnapshot, State
from django_helisched.testing.contract.factories import (
    LEASE,
    ODD_VALUES,
    SECOND,
    START,
    TICK,
    canceled,
    claimed,
    enqueued,
    failure,
    new_job,
    only,
    read,
    retry,
    running,
    settled,
    state_of,
    success,
)

if TYPE_CHECKING:
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


class ClaimContract:
    """Which jobs are due, and what a claim does to them."""

    def test_a_job_is_due_at_its_instant_and_not_before(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store, due_at=START + SECOND)
        clock.advance(SECOND - TICK)
        assert _ids(store) == []
        clock.advance(TICK)
        assert _ids(store) == [job.id]

    def test_a_claimed_job_is_in_progress_under_a_lease(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store)
        clock.advance(5)
        claimed(store, worker_id="worker-7")
        row = read(store, job.id)
        assert (row.state, row.lease_holder) == (State.IN_PROGRESS, "worker-7")
        assert row.lease_expires_at == START + 5 * SECOND + LEASE
        assert row.started_at == START + 5 * SECOND
        assert row.next_run_at == START

    def test_a_claim_carries_the_row_as_it_is_now(self, store: JobStore) -> None:
        enqueued(store, name="n", space="s", priority=3, on_complete="shop.jobs.done", timeout=SECOND)
        claim = claimed(store)
        row = read(store, claim.id)
        for name in {item.name for item in fields(ClaimedJob)} & {item.name for item in fields(JobSnapshot)}:
            assert getattr(claim, name) == getattr(row, name), name

    def test_a_claim_carries_the_arguments(self, store: JobStore) -> None:
        enqueued(store, args=[1, [2]], kwargs={"a": None}, context={"c": 1}, options={"o": 2}, meta={"m": 3})
        claim = claimed(store)
        assert (claim.has_args, list(claim.args), dict(claim.kwargs)) == (True, [1, [2]], {"a": None})
        assert (claim.context, dict(claim.options), dict(claim.meta)) == ({"c": 1}, {"o": 2}, {"m": 3})

    def test_a_claim_carries_the_arguments_exactly_as_they_went_in(self, store: JobStore) -> None:
        named = {f"key {number}": value for number, value in enumerate(ODD_VALUES)}
        enqueued(store, args=ODD_VALUES, kwargs=named, context=named, options={"z": 1, "a": 2}, meta={"m": [1]})
        claim = claimed(store)
        assert repr(list(claim.args)) == repr(ODD_VALUES)
        assert repr(dict(claim.kwargs)) == repr(claim.context) == repr(named)
        assert list(claim.options.items()) == [("z", 1), ("a", 2)]
        assert claim.meta == {"m": [1]}

    def test_a_claim_carries_odd_texts_exactly_as_they_went_in(self, store: JobStore) -> None:
        name = 'a "name", [with] {all} \\ \t\n that JSON spells \u2028 otherwise, \N{SNAKE}'
        enqueued(store, name=name, space="\u00e9\u0301")
        claim = claimed(store)
        assert (claim.name, claim.space) == (name, "\u00e9\u0301")

    def test_a_claim_without_arguments_carries_empty_ones(self, store: JobStore) -> None:
        enqueued(store)
        claim = claimed(store)
        assert (claim.has_args, list(claim.args), dict(claim.kwargs)) == (False, [], {})
        assert (claim.context, dict(claim.options), dict(claim.meta)) == (None, {}, {})

    def test_every_claim_adds_one_to_the_fence_and_nothing_to_the_counters(self, store: JobStore) -> None:
        enqueued(store)
        for fence in (1, 2, 3):
            claim = claimed(store)
            assert (claim.fence, claim.attempts, claim.losses, claim.attempt_count) == (fence, 0, 0, 0)
            store.release([claim])

    def test_the_attempt_number_goes_on_after_a_retry(self, store: JobStore, clock: ManualClock) -> None:
        first = running(store)
        settled(store, first, retry(SECOND))
        clock.advance(SECOND)
        second = claimed(store)
        assert (first.attempt, second.attempt) == (1, 2)
        assert (second.attempts, second.due_at) == (1, first.due_at)

    def test_the_start_of_an_at_most_once_job_is_open_until_its_body_begins(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        claim = running(store, at_most_once=True)
        assert read(store, claim.id).started_at is None
        clock.advance(1)
        assert store.start(claim)
        assert read(store, claim.id).started_at == START + SECOND

    def test_a_repeated_claim_of_an_at_most_once_job_forgets_the_earlier_start(self, store: JobStore) -> None:
        claim = running(store, at_most_once=True)
        store.start(claim)
        settled(store, claim, retry(0 * SECOND))
        claimed(store)
        assert read(store, claim.id).started_at is None

    def test_a_job_in_progress_is_nobody_elses(self, store: JobStore) -> None:
        enqueued(store)
        claimed(store)
        assert store.claim(worker_id="worker-2", limit=64, lease=LEASE) == []

    def test_an_expired_lease_alone_makes_nobody_the_owner(self, store: JobStore, clock: ManualClock) -> None:
        running(store)
        clock.advance(100 * LEASE)
        assert _ids(store) == []

    def test_a_finished_job_is_never_claimed(self, store: JobStore) -> None:
        for outcome in (success(), failure(), canceled()):
            settled(store, running(store), outcome)
        assert _ids(store) == []

    def test_no_more_than_the_limit_are_taken_and_those_are_the_soonest(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        jobs = [enqueued(store, due_at=START + number * TICK) for number in (4, 1, 3, 0, 2)]
        clock.advance(1)
        assert _ids(store, limit=3) == [jobs[3].id, jobs[1].id, jobs[4].id]

    def test_a_limit_of_nothing_takes_nothing(self, store: JobStore) -> None:
        enqueued(store)
        assert _ids(store, limit=0) == []
        assert _ids(store, limit=-1) == []

    def test_one_claim_takes_at_most_256(self, store: JobStore) -> None:
        store.enqueue([new_job(store) for _ in range(258)])
        assert len(_ids(store, limit=1000)) == 256
        assert len(_ids(store, limit=1000)) == 2

    def test_the_highest_priority_comes_first_then_the_oldest_then_the_id(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        late_low, low, low_too, high = (
            enqueued(store, priority=priority, due_at=START + after * TICK)
            for priority, after in ((-5, 3), (-5, 1), (-5, 1), (5, 2))
        )
        clock.advance(1)
        assert _ids(store) == [high.id, low.id, low_too.id, late_low.id]

    def test_a_job_may_start_at_the_instant_it_expires_and_not_later(self, store: JobStore, clock: ManualClock) -> None:
        queue = "until"
        first, _ = (enqueued(store, queue=queue, expires_at=START + SECOND) for _ in range(2))
        clock.advance(SECOND)
        assert _ids(store, limit=1) == [first.id]
        clock.advance(TICK)
        assert _ids(store) == []

    def test_an_expired_job_takes_nobodys_place(self, store: JobStore, clock: ManualClock) -> None:
        expired = enqueued(store, expires_at=START, priority=100)
        fresh = enqueued(store)
        clock.advance(TICK)
        assert _ids(store, limit=1) == [fresh.id]
        assert state_of(store, expired.id) == State.PENDING

    def test_a_claim_of_many_gives_each_its_own_arguments(self, store: JobStore) -> None:
        store.enqueue([new_job(store, args=[number]) for number in range(5)])
        claims = store.claim(worker_id="w", limit=5, lease=LEASE, queues=only("default"))
        assert [list(claim.args) for claim in claims] == [[0], [1], [2], [3], [4]]


def _ids(store: JobStore, limit: int = 64) -> list[object]:
    return [claim.id for claim in store.claim(worker_id="worker-1", limit=limit, lease=LEASE)]
