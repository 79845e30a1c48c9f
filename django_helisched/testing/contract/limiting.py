"""How many jobs of one limit key are out at a time: who waits, who is let out, and what frees a slot."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_helisched.crons.catch_up import overlap_key_of
from django_helisched.crons.cron import CronSnapshot, Overlap
from django_helisched.crons.reconcile import ReconcilePlan
from django_helisched.jobs.follow_up import OPTION
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Hold, State, Trigger
from django_helisched.stores.base import ADMIT_LIMIT, EVERY_QUEUE, DeclaredLimits, QueueFilter
from django_helisched.testing.contract.factories import (
    CALLBACK,
    GRACE,
    SECOND,
    START,
    all_jobs,
    canceled,
    claimed,
    enqueued,
    failure,
    lapse,
    loss,
    new_job,
    only,
    read,
    retry,
    running,
    settled,
    snooze,
    state_of,
    success,
    swept,
    undone,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.jobs.job import ClaimedJob, JobSnapshot
    from django_helisched.stores.base import CronStore, JobStore
    from django_helisched.testing.clock import ManualClock

KEY = "order:7"


def limits(capacity: int | None, *, later: int = 0) -> DeclaredLimits:
    """Return what a process declares that began ``later`` seconds after the first one."""
    return DeclaredLimits(capacity_of=lambda _: capacity, since=START + later * SECOND)


def admit(store: JobStore, capacity: int | None = 1, queues: QueueFilter = EVERY_QUEUE) -> int:
    """Look, as a process whose code allows so many."""
    return store.admit(queues=queues, limits=limits(capacity))


def waiting(store: JobStore, **fields: Any) -> JobSnapshot:
    """Store a job that waits for a slot."""
    return enqueued(store, **{"limit_key": KEY, **fields})


def out(store: JobStore, **fields: Any) -> ClaimedJob:
    """Store a job with a limit, let it out and claim it."""
    job = waiting(store, **{"queue": f"q{uuid7().hex}", **fields})
    assert admit(store, queues=only(job.queue)) == 1
    return claimed(store, queues=only(job.queue))


class LimitContract:
    """JobStore.admit for limits, withdraw and out_under."""

    def test_a_job_with_a_limit_waits_until_it_is_admitted(self, store: JobStore, clock: ManualClock) -> None:
        job = waiting(store)
        assert (job.state, job.hold, job.held_at) == (State.PENDING, Hold.LIMIT, START)
        assert store.next_due_at() is None
        assert store.next_due_at(waiting=True) == START
        assert _claims(store) == []
        clock.advance(1)
        assert admit(store) == 1
        assert read(store, job.id) == replace(job, hold=Hold.NONE, held_at=None)
        assert admit(store) == 0
        assert claimed(store).id == job.id

    def test_no_more_are_out_than_the_capacity(self, store: JobStore) -> None:
        jobs = [waiting(store) for _ in range(5)]
        assert admit(store, 2) == 2
        assert admit(store, 2) == 0
        assert store.out_under(KEY) == 2
        claims = _claims(store)
        assert [claim.id for claim in claims] == [job.id for job in jobs[:2]]
        assert admit(store, 2) == 0
        settled(store, claims[0], success())
        assert store.out_under(KEY) == 1
        assert admit(store, 2) == 1
        assert claimed(store).id == jobs[2].id

    def test_keys_do_not_wait_for_one_another(self, store: JobStore) -> None:
        for _ in range(3):
            waiting(store, limit_key="a")
        other = waiting(store, limit_key="b")
        assert admit(store) == 2
        assert other.id in {claim.id for claim in _claims(store)}
        assert admit(store) == 0

    def test_keys_are_compared_character_by_character(self, store: JobStore) -> None:
        keys = ["a", "A", "ä", "a b"]
        for key in keys:
            waiting(store, limit_key=key)
        assert admit(store) == len(keys)
        assert [store.out_under(key) for key in keys] == [1] * len(keys)

    def test_of_one_key_the_highest_priority_goes_first_then_the_oldest_then_the_id(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        last = waiting(store, priority=-1, queue="a")
        second = waiting(store, queue="b")
        clock.advance(1)
        third = waiting(store, queue="a")
        first = waiting(store, priority=5, queue="c")
        for job in (first, second, third, last):
            assert admit(store) == 1
            claim = claimed(store)
            assert claim.id == job.id
            settled(store, claim, success())

    def test_a_job_that_is_due_later_stands_in_no_line_before(self, store: JobStore, clock: ManualClock) -> None:
        later = waiting(store, due_at=START + SECOND, priority=9)
        now = waiting(store)
        assert (later.hold, later.held_at) == (Hold.LATER, START)
        assert store.next_due_at() == START + SECOND
        assert admit(store) == 1
        settled(store, claimed(store), success())
        assert state_of(store, now.id) == State.SUCCESS
        assert admit(store) == 0
        assert read(store, later.id) == later
        clock.advance(1)
        assert admit(store) == 1
        assert store.next_due_at() == START + SECOND
        assert claimed(store).id == later.id

    def test_what_becomes_due_while_the_limit_is_full_joins_the_line(self, store: JobStore, clock: ManualClock) -> None:
        claim = out(store)
        later = waiting(store, due_at=START + SECOND)
        clock.advance(2)
        assert admit(store) == 0
        assert (read(store, later.id).hold, read(store, later.id).held_at) == (Hold.LIMIT, START + 2 * SECOND)
        assert store.next_due_at() is None
        assert store.next_due_at(waiting=True) == START + SECOND
        settled(store, claim, success())
        assert admit(store) == 1

    def test_every_end_of_an_attempt_frees_the_slot(self, store: JobStore) -> None:
        for outcome in (success(), failure(), canceled()):
            claim = out(store)
            settled(store, claim, outcome)
            assert store.out_under(KEY) == 0
            assert read(store, claim.id).hold == Hold.NONE

    def test_a_job_that_runs_again_waits_again(self, store: JobStore, clock: ManualClock) -> None:
        for outcome in (retry(), snooze()):
            claim = out(store)
            settled(store, claim, outcome)
            job = read(store, claim.id)
            assert (job.hold, job.held_at) == (Hold.LATER, clock.now())
            assert store.out_under(KEY) == 0
            other = out(store)
            clock.advance(1)
            assert admit(store) == 0
            settled(store, other, success())
            assert admit(store) == 1
            assert claimed(store).id == claim.id
            settled(store, claimed_again(store, claim), success())

    def test_a_job_that_runs_again_at_once_goes_to_the_line(self, store: JobStore) -> None:
        claim = out(store)
        settled(store, claim, snooze(0 * SECOND))
        assert read(store, claim.id).hold == Hold.LIMIT
        assert admit(store) == 1

    def test_a_released_job_gives_its_slot_back(self, store: JobStore) -> None:
        claim = out(store)
        assert store.release([claim]) == 1
        assert (read(store, claim.id).hold, store.out_under(KEY)) == (Hold.LIMIT, 0)
        assert admit(store) == 1

    def test_a_job_of_an_unknown_function_gives_its_slot_back_and_waits_again_later(self, store: JobStore) -> None:
        claim = out(store)
        store.hold_unknown([claim])
        assert (read(store, claim.id).hold, store.out_under(KEY)) == (Hold.UNKNOWN_FUNCTION, 0)
        other = out(store)
        store.unhold_known([claim.fn_path])
        assert read(store, claim.id).hold == Hold.LIMIT
        assert admit(store) == 0
        settled(store, other, success())
        assert admit(store) == 1

    def test_a_swept_job_gives_its_slot_back(self, store: JobStore, clock: ManualClock) -> None:
        claim = out(store)
        lapse(clock)
        assert admit(store) == 0  # nobody knows yet that its worker is dead
        store.sweep({}, lease=GRACE, decide_loss=loss)
        assert store.out_under(KEY) == 1
        swept(store, clock)
        assert (state_of(store, claim.id), store.out_under(KEY)) == (State.PENDING, 0)
        assert read(store, claim.id).hold == Hold.LATER
        clock.advance(GRACE)
        assert admit(store) == 1

    def test_a_canceled_job_gives_its_slot_back(self, store: JobStore) -> None:
        admitted = waiting(store)
        assert admit(store) == 1
        store.cancel(admitted.id)
        assert store.out_under(KEY) == 0
        claim = out(store)
        store.cancel(claim.id)
        assert store.out_under(KEY) == 1  # asked to stop, and still at work
        store.cancel(claim.id, force=True)
        assert store.out_under(KEY) == 0

    def test_an_expired_job_is_not_let_out_and_gives_its_slot_back(self, store: JobStore, clock: ManualClock) -> None:
        first = waiting(store, expires_at=START + SECOND)
        second = waiting(store, expires_at=START + SECOND)
        assert admit(store) == 1
        clock.advance(2)
        third = waiting(store)
        assert store.expire(unknown_grace=GRACE) == 2
        assert {state_of(store, first.id), state_of(store, second.id)} == {State.FAILED}
        assert admit(store) == 1
        assert claimed(store).id == third.id

    def test_a_job_that_has_expired_in_the_line_takes_no_slot(self, store: JobStore, clock: ManualClock) -> None:
        waiting(store, expires_at=START + SECOND)
        alive = waiting(store)
        clock.advance(2)
        assert admit(store) == 1
        assert claimed(store).id == alive.id

    def test_a_requeued_job_waits_like_any_other(self, store: JobStore, clock: ManualClock) -> None:
        claim = out(store)
        settled(store, claim, failure())
        other = out(store)
        clock.advance(1)
        assert store.requeue(claim.id)
        job = read(store, claim.id)
        assert (job.hold, job.held_at) == (Hold.LIMIT, START + SECOND)
        assert admit(store) == 0
        settled(store, other, success())
        assert admit(store) == 1

    def test_a_child_and_one_born_canceled(self, store: JobStore) -> None:
        parent = running(store)
        child = waiting(store, parent_id=parent.id, parent_fence=parent.fence)
        assert child.hold == Hold.LIMIT
        store.cancel(parent.id)
        born = waiting(store, parent_id=parent.id)
        assert (born.state, born.hold, born.held_at) == (State.CANCELED, Hold.NONE, None)
        assert admit(store) == 0

    def test_a_callback_waits_for_the_limit_of_its_function(self, store: JobStore) -> None:
        resolved = {OPTION: {"limit": "done:{kind}:{job_id}", "limit_arguments": {"kind": "k"}}}
        claim = running(store, on_complete=CALLBACK, options=resolved)
        settled(store, claim, success())
        [callback] = [job for job in all_jobs(store) if job.trigger == Trigger.ON_COMPLETE]
        assert (callback.limit_key, callback.hold) == (f"done:k:{claim.id}", Hold.LIMIT)
        assert admit(store) == 1

    def test_paused_and_unserved_queues_are_passed_over(self, store: JobStore, clock: ManualClock) -> None:
        first = waiting(store, queue="reports")
        second = waiting(store, queue="mail")
        store.pause_queue("reports", until=START + SECOND)
        assert admit(store) == 1
        claim = claimed(store)
        assert claim.id == second.id
        settled(store, claim, success())
        assert admit(store) == 0
        clock.advance(1)
        assert admit(store, queues=only("mail")) == 0
        assert admit(store, queues=only("reports")) == 1
        assert claimed(store).id == first.id

    def test_what_was_let_out_and_nobody_will_claim_is_withdrawn(self, store: JobStore) -> None:
        stuck = waiting(store, queue="reports")
        assert admit(store) == 1
        other = waiting(store, queue="mail")
        assert store.withdraw(lambda _: True) == 0
        store.pause_queue("reports")
        assert admit(store) == 0
        assert store.withdraw(lambda _: True) == 1
        assert (read(store, stuck.id).hold, read(store, stuck.id).held_at) == (Hold.LIMIT, START)
        assert admit(store) == 1
        assert store.withdraw(lambda queue: queue != "mail") == 1
        assert read(store, other.id).hold == Hold.LIMIT

    def test_what_runs_is_never_withdrawn(self, store: JobStore) -> None:
        claim = out(store)
        enqueued(store)
        assert store.withdraw(lambda _: False) == 0
        assert store.out_under(KEY) == 1
        assert settled(store, claim, success()).name == "DONE"

    def test_the_newest_declaration_wins(self, store: JobStore) -> None:
        for _ in range(6):
            waiting(store)
        assert store.admit(limits=limits(1, later=5)) == 1
        assert store.admit(limits=limits(3, later=4)) == 0  # an older process
        assert store.admit(limits=limits(3, later=6)) == 2
        assert store.admit(limits=limits(9, later=6)) == 0  # one process does not say two things
        assert store.admit(limits=limits(2, later=7)) == 0
        assert store.admit(limits=limits(9, later=6)) == 0
        assert store.admit(limits=limits(4, later=8)) == 1

    def test_one_is_let_out_where_no_code_says_how_many(self, store: JobStore) -> None:
        for _ in range(3):
            waiting(store)
        assert store.admit() == 1
        assert store.admit() == 0
        assert admit(store, 2) == 1

    def test_a_limit_that_nobody_uses_any_more_is_forgotten(self, store: JobStore) -> None:
        claim = out(store)
        store.withdraw(lambda _: True)
        waiting(store)
        assert store.admit(limits=limits(2, later=-1)) == 0  # still known: it is in use
        settled(store, claim, success())
        [left] = [job for job in all_jobs(store) if job.state == State.PENDING]
        store.cancel(left.id)
        store.withdraw(lambda _: True)
        waiting(store)
        waiting(store)
        assert store.admit(limits=limits(2, later=-1)) == 2

    def test_one_look_is_bounded_and_fair(self, store: JobStore) -> None:
        many = ADMIT_LIMIT + 10
        store.enqueue([new_job(store, limit_key="a") for _ in range(many)])
        store.enqueue([new_job(store, limit_key="b") for _ in range(5)])
        assert admit(store, many) == ADMIT_LIMIT // 2 + 5
        assert store.out_under("b") == 5
        assert admit(store, many) == many - ADMIT_LIMIT // 2

    def test_a_job_of_a_cron_waits_for_overlap_first_and_then_for_its_limit(
        self, store: JobStore, crons: CronStore
    ) -> None:
        cron = _cron(crons)
        full = out(store)
        given = {"cron_id": cron.id, "overlap_key": overlap_key_of(cron), "trigger": Trigger.CRON}
        first, second = waiting(store, **given), waiting(store, **given)
        assert first.hold == Hold.OVERLAP
        assert admit(store) == 0
        assert [read(store, job.id).hold for job in (first, second)] == [Hold.LIMIT, Hold.OVERLAP]
        settled(store, full, success())
        assert admit(store) == 1
        settled(store, claimed(store), success())
        assert admit(store) == 1
        assert claimed(store).id == second.id

    def test_an_admission_is_undone_with_the_callers_transaction(self, store: JobStore) -> None:
        job = waiting(store)
        with undone(store):
            assert admit(store) == 1
        assert read(store, job.id) == job
        assert admit(store) == 1


def claimed_again(store: JobStore, claim: ClaimedJob) -> ClaimedJob:
    """Return the claim that holds the job of ``claim`` now."""
    return replace(claim, fence=read(store, claim.id).fence, attempt_count=read(store, claim.id).attempt_count)


def _cron(crons: CronStore) -> CronSnapshot:
    row = CronSnapshot(
        id=uuid7(),
        name="chart",
        spec='{"kind":"interval","ms":60000}',
        overlap=Overlap.SKIP,
        anchor=START,
        fn_path="shop.jobs.work",
        next_run_at=START,
        counted_since=START,
        declared_at=START,
    )
    plan: Callable[..., ReconcilePlan] = lambda rows, now: ReconcilePlan(inserts=(row,))  # noqa: E731
    crons.reconcile("code", "", plan)
    return row


def _claims(store: JobStore) -> list[ClaimedJob]:
    return list(store.claim(worker_id="w", limit=64, lease=GRACE))
