"""settle: one attempt ends, and everything that hangs on it changes with it."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django_helisched.jobs.follow_up import MAX_RESULT
from django_helisched.jobs.job import FailureReason, State, Trigger
from django_helisched.jobs.outcome import AttemptOutcome, ErrorReport, Outcome
from django_helisched.jobs.progress import ProgressReport
from django_helisched.stores.base import SettleAnswer, Settlement
from django_helisched.testing.contract.factories import (
    CALLBACK,
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
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock

DONE, ASKED, LOST = SettleAnswer.DONE, SettleAnswer.CANCEL_REQUESTED, SettleAnswer.LOST


class SettleContract:
    """Endings of attempts; refused ones are in RefuseContract."""

    def test_the_last_progress_is_written_with_the_end_and_not_without(self, store: JobStore) -> None:
        last = ProgressReport(done=3, total=3, message="all")
        claim, asked = running(store), running(store)
        store.cancel(asked.id)
        ends = [
            Settlement(claim=each, outcome=success(), started_at=START, log="two\nlines", progress=last)
            for each in (claim, asked)
        ]
        assert store.settle(ends) == [DONE, ASKED]
        found = store.progress_of(claim.id)
        assert found is not None
        assert (found.done, found.total, found.message) == (3, 3, "all")
        assert store.attempts_of(claim.id)[0].log == "two\nlines"
        assert store.progress_of(asked.id) is None

    def test_success_ends_the_job(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        before = read(store, claim.id)
        clock.advance(2)
        assert settled(store, claim, success(7)) is DONE
        assert read(store, claim.id) == replace(
            before,
            state=State.SUCCESS,
            completed_at=START + 2 * SECOND,
            lease_holder=None,
            lease_expires_at=None,
            attempt_count=1,
        )

    def test_the_attempt_tells_who_ran_it_when_and_with_which_result(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        clock.advance(3)
        began_at = START + SECOND
        settled(store, claim, success({"n": [1, None]}), started_at=began_at, log="line 1\nline 2")
        [attempt] = store.attempts_of(claim.id)
        assert (attempt.job_id, attempt.number, attempt.outcome) == (claim.id, 1, "success")
        assert (attempt.started_at, attempt.ended_at) == (began_at, START + 3 * SECOND)
        assert (attempt.worker_id, attempt.result, attempt.log) == ("worker-1", {"n": [1, None]}, "line 1\nline 2")
        assert (attempt.error_class, attempt.error, attempt.traceback) == ("", "", "")

    def test_ends_written_together_keep_what_each_left(self, store: JobStore) -> None:
        left: list[tuple[Any, str]] = [
            (None, ""), (0, ""), ("", ""), (False, ""), ([], ""), ({"a": [1.5, None, "\u00e9\U0001f600"]}, ""),
            ('"quoted" \\ and\nbroken', ""), ("\u2028 \u0000 end", ""), ("x" * 5000, ""), (7, "one\ttwo \u00e9\nthree"),
        ]  # fmt: skip
        claims = [running(store) for _ in left]
        ends = [
            Settlement(claim=claim, outcome=success(result), started_at=START + number * SECOND, log=log)
            for number, (claim, (result, log)) in enumerate(zip(claims, left, strict=True))
        ]
        assert set(store.settle(ends)) == {DONE}
        attempts = [last_attempt(store, claim.id) for claim in claims]
        assert [(attempt.result, attempt.log) for attempt in attempts] == left
        assert [attempt.started_at for attempt in attempts] == [START + number * SECOND for number in range(len(left))]

    def test_an_older_claim_is_lost_beside_the_newer_one_of_its_job(self, store: JobStore) -> None:
        for outcome_of_old in (success("old"), failure("ValueError: x", FailureReason.NON_RETRYABLE)):
            for is_old_first in (True, False):
                old = running(store, on_complete=CALLBACK)
                store.release([old])
                new = claimed(store, queues=only(old.queue))
                ends = [
                    Settlement(claim=each, outcome=outcome, started_at=START, follow_up=new_job(store, name=name))
                    for each, outcome, name in ((old, outcome_of_old, "no"), (new, success("new"), f"after {old.id}"))
                ]
                answers = store.settle(ends if is_old_first else ends[::-1])
                assert answers == ([LOST, DONE] if is_old_first else [DONE, LOST])
                assert state_of(store, old.id) == State.SUCCESS
                assert [attempt.result for attempt in store.attempts_of(old.id)] == ["new"]
                assert [job.name for job in all_jobs(store)].count(f"after {old.id}") == 1
        assert "no" not in {job.name for job in all_jobs(store)}

    def test_a_result_over_64_kb_is_replaced_by_a_note(self, store: JobStore) -> None:
        fits, large = running(store), running(store)
        settled(store, fits, success("x" * (MAX_RESULT - 2)))
        settled(store, large, success("x" * (MAX_RESULT - 1)))
        assert last_attempt(store, fits.id).result == "x" * (MAX_RESULT - 2)
        assert last_attempt(store, large.id).result == {"note": f"a value of {MAX_RESULT + 1} bytes was left out"}

    def test_a_final_failure_keeps_its_reason_and_its_error(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        clock.advance(2)
        assert settled(store, claim, failure("ValueError: x", FailureReason.NON_RETRYABLE)) is DONE
        row = read(store, claim.id)
        assert (row.state, row.failure_reason) == (State.FAILED, FailureReason.NON_RETRYABLE)
        assert (row.attempts, row.attempt_count, row.last_error) == (1, 1, "ValueError: x")
        assert (row.completed_at, row.lease_holder, row.lease_expires_at) == (START + 2 * SECOND, None, None)
        attempt = last_attempt(store, claim.id)
        assert (attempt.outcome, attempt.error_class) == ("failed", "builtins.ValueError")
        assert (attempt.error, attempt.traceback, attempt.result) == ("ValueError: x", "Traceback", None)

    def test_a_failure_with_budget_left_puts_the_job_back(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        clock.advance(2)
        assert settled(store, claim, retry(timedelta(seconds=5))) is DONE
        row = read(store, claim.id)
        assert (row.state, row.next_run_at, row.due_at) == (State.PENDING, START + 7 * SECOND, START)
        assert (row.attempts, row.losses, row.attempt_count) == (1, 0, 1)
        assert (row.last_error, row.failure_reason, row.completed_at) == ("ValueError: no", "", None)
        assert (row.lease_holder, row.lease_expires_at) == (None, None)
        assert outcomes(store, claim.id) == [(1, "failed")]

    def test_a_delay_is_cut_to_milliseconds(self, store: JobStore) -> None:
        claim = running(store)
        settled(store, claim, retry(timedelta(microseconds=1999)))
        assert read(store, claim.id).next_run_at == START + timedelta(milliseconds=1)

    def test_a_delay_beyond_the_calendar_ends_at_its_last_instant(self, store: JobStore) -> None:
        claim = running(store)
        assert settled(store, claim, snooze(timedelta.max)) is DONE
        assert read(store, claim.id).next_run_at.replace(tzinfo=None) == datetime.max.replace(microsecond=999000)  # noqa: DTZ901

    def test_a_snooze_costs_no_budget_and_leaves_the_error(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store)
        settled(store, claim, retry(SECOND, "first"))
        clock.advance(SECOND)
        assert settled(store, claimed(store), snooze(SECOND)) is DONE
        row = read(store, claim.id)
        assert (row.state, row.next_run_at) == (State.PENDING, START + 2 * SECOND)
        assert (row.attempts, row.attempt_count, row.last_error) == (1, 2, "first")
        assert outcomes(store, claim.id) == [(1, "failed"), (2, "snoozed")]

    def test_success_after_a_failure_clears_the_error_and_keeps_the_count(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        claim = running(store)
        settled(store, claim, retry(SECOND))
        clock.advance(SECOND)
        settled(store, claimed(store), success())
        row = read(store, claim.id)
        assert (row.state, row.last_error, row.attempts, row.attempt_count) == (State.SUCCESS, "", 1, 2)
        assert outcomes(store, claim.id) == [(1, "failed"), (2, "success")]

    def test_text_that_is_hard_to_store_is_stored(self, store: JobStore) -> None:
        odd = "é日本🙂\n\t'\"%s {} \\ "
        report = ErrorReport(error_class=odd, error=odd * 400, traceback=odd * 1000, line=odd)
        claim = running(store)
        outcome = Outcome(state=State.FAILED, attempt=AttemptOutcome.FAILED, failures=1, report=report)
        settled(store, claim, replace(outcome, failure_reason=FailureReason.EXHAUSTED), log=odd)
        attempt = last_attempt(store, claim.id)
        assert (attempt.error_class, attempt.error, attempt.traceback) == (odd, odd * 400, odd * 1000)
        assert (read(store, claim.id).last_error, attempt.log) == (odd, odd)

    def test_a_terminal_end_stores_the_callback(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, on_complete=CALLBACK, context={"order": [None]}, space="acme")
        clock.advance(2)
        settled(store, claim, success({"v": 1}))
        made = all_jobs(store)[-1]
        assert (made.fn_path, made.state, made.trigger) == (CALLBACK, State.PENDING, Trigger.ON_COMPLETE)
        assert (made.due_at, made.next_run_at, made.created_at) == (START + 2 * SECOND,) * 3
        assert (made.parent_id, made.space) == (None, "acme")
        assert callbacks(store) == [
            {"job_id": str(claim.id), "context": {"order": [None]}, "result": {"kind": "success", "value": {"v": 1}}}
        ]

    def test_every_terminal_end_calls_back_once_with_its_own_result(self, store: JobStore) -> None:
        for outcome in (success(), failure("E: x"), canceled()):
            settled(store, running(store, on_complete=CALLBACK), outcome)
        assert [kwargs["result"] for kwargs in callbacks(store)] == [
            {"kind": "success", "value": None},
            {"kind": "failed", "error": "E: x"},
            {"kind": "canceled"},
        ]

    def test_a_retry_calls_nobody_back_even_if_a_callback_is_handed_over(self, store: JobStore) -> None:
        for outcome in (retry(), snooze()):
            claim = running(store, on_complete=CALLBACK)
            settled(store, claim, outcome, follow_up=new_job(store, fn_path=CALLBACK, trigger=Trigger.ON_COMPLETE))
        assert callbacks(store) == []

    def test_a_callback_can_be_claimed_at_once(self, store: JobStore) -> None:
        settled(store, running(store, on_complete=CALLBACK), success())
        assert claimed(store).fn_path == CALLBACK

    def test_a_batch_is_answered_one_by_one_in_its_order(self, store: JobStore) -> None:
        lost, asked, fine, also_fine = (running(store) for _ in range(4))
        store.cancel(lost.id, force=True)
        store.cancel(asked.id)
        batch = [
            Settlement(claim=claim, outcome=outcome, started_at=START)
            for claim, outcome in ((also_fine, retry()), (lost, success()), (fine, success()), (asked, failure()))
        ]
        assert store.settle(batch) == [DONE, LOST, DONE, ASKED]
        assert [state_of(store, claim.id) for claim in (also_fine, lost, fine, asked)] == [
            State.PENDING,
            State.CANCELED,
            State.SUCCESS,
            State.IN_PROGRESS,
        ]
        assert store.settle([]) == []

    def test_a_batch_ends_parent_and_child_before_the_parents_cancel_reaches_the_family(self, store: JobStore) -> None:
        parent = running(store)
        child = running(store, parent_id=parent.id)
        grandchild = enqueued(store, parent_id=child.id)
        batch = [
            Settlement(claim=claim, outcome=outcome, started_at=START)
            for claim, outcome in ((parent, canceled()), (child, success()))
        ]
        assert store.settle(batch) == [DONE, DONE]
        assert state_of(store, child.id) == State.SUCCESS
        assert state_of(store, grandchild.id) == State.CANCELED

    def test_attempts_are_numbered_on_across_retries_losses_and_requeues(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        claim = running(store, max_failures=9)
        settled(store, claim, retry(SECOND))
        clock.advance(SECOND)
        claimed(store)
        swept(store, clock)
        clock.advance(600)
        settled(store, claimed(store), failure())
        store.requeue(claim.id)
        settled(store, claimed(store), success())
        assert outcomes(store, claim.id) == [(1, "failed"), (2, "lost"), (3, "failed"), (4, "success")]
        assert read(store, claim.id).attempt_count == 4
