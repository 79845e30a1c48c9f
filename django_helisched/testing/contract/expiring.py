"""expire: jobs whose time is over before anybody started them."""

# ruff: noqa: S101

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.jobs.job import FailureReason, Hold, State
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
    new_job,
    only,
    outcomes,
    read,
    retry,
    running,
    settled,
    state_of,
)

if TYPE_CHECKING:
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


class ExpireContract:
    """The end of what waited too long."""

    def test_a_job_expires_strictly_after_its_instant(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store, expires_at=START + SECOND, on_complete=CALLBACK)
        clock.advance(SECOND)
        assert store.expire(unknown_grace=GRACE) == 0
        assert store.get(job.id) == job
        clock.advance(TICK)
        assert store.expire(unknown_grace=GRACE) == 1
        row = read(store, job.id)
        assert (row.state, row.failure_reason) == (State.FAILED, FailureReason.EXPIRED)
        assert (row.completed_at, row.attempts, row.attempt_count) == (clock.now(), 0, 0)
        assert row.last_error
        assert outcomes(store, job.id) == []
        assert [kwargs["result"] for kwargs in callbacks(store)] == [{"kind": "failed", "error": row.last_error}]

    def test_a_running_or_finished_job_does_not_expire(self, store: JobStore, clock: ManualClock) -> None:
        running(store, expires_at=START + SECOND)
        store.cancel(enqueued(store, expires_at=START + SECOND).id)
        before = all_jobs(store)
        clock.advance(2)
        assert store.expire(unknown_grace=GRACE) == 0
        assert all_jobs(store) == before

    def test_a_retry_that_comes_too_late_expires(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, expires_at=START + SECOND)
        settled(store, claim, retry(10 * SECOND))
        clock.advance(2)
        assert store.expire(unknown_grace=GRACE) == 1
        row = read(store, claim.id)
        assert (row.failure_reason, row.attempts, row.attempt_count) == (FailureReason.EXPIRED, 1, 1)

    def test_an_unknown_function_fails_after_the_grace(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store, fn_path="shop.gone", on_complete=CALLBACK)
        clock.advance(5)
        store.hold_unknown([claimed(store)])
        clock.advance(GRACE)
        assert store.expire(unknown_grace=GRACE) == 0
        clock.advance(TICK)
        assert store.expire(unknown_grace=GRACE) == 1
        row = read(store, job.id)
        assert (row.state, row.failure_reason) == (State.FAILED, FailureReason.UNKNOWN_FUNCTION)
        assert (row.hold, row.held_at, row.attempt_count) == (Hold.NONE, None, 0)
        assert "shop.gone" in row.last_error
        assert [kwargs["result"]["kind"] for kwargs in callbacks(store)] == ["failed"]

    def test_the_grace_starts_anew_with_every_hold(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store)
        for _ in range(3):
            store.hold_unknown([claimed(store)])
            clock.advance(GRACE)
            assert store.expire(unknown_grace=GRACE) == 0
            store.unhold_known([job.fn_path])

    def test_a_held_job_that_expired_fails_as_expired(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store, expires_at=START + SECOND)
        store.hold_unknown([claimed(store)])
        clock.advance(2 * GRACE)
        assert store.expire(unknown_grace=GRACE) == 1
        assert read(store, job.id).failure_reason == FailureReason.EXPIRED

    def test_the_jobs_that_expired_first_fail_first(self, store: JobStore, clock: ManualClock) -> None:
        later, sooner = (enqueued(store, expires_at=START + after * SECOND) for after in (2, 1))
        clock.advance(3)
        assert store.expire(unknown_grace=GRACE, limit=1) == 1
        assert [state_of(store, job.id) for job in (later, sooner)] == [State.PENDING, State.FAILED]

    def test_no_more_than_the_limit_of_each_kind_fail_at_once(self, store: JobStore, clock: ManualClock) -> None:
        store.enqueue([new_job(store, queue="u") for _ in range(3)])
        store.hold_unknown(store.claim(worker_id="w", limit=3, lease=LEASE, queues=only("u")))
        store.enqueue([new_job(store, expires_at=START) for _ in range(3)])
        clock.advance(2 * GRACE)
        assert [store.expire(unknown_grace=GRACE, limit=2) for _ in range(3)] == [4, 2, 0]
