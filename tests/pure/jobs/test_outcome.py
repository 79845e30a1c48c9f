from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_helisched.jobs.backoff import Backoff
from django_helisched.jobs.job import TERMINAL, FailureReason, Hold, State
from django_helisched.jobs.outcome import (
    MAX_LINE,
    AttemptOutcome,
    Ending,
    ErrorReport,
    Outcome,
    canceled,
    decide,
    decide_expiry,
    decide_loss,
)
from tests.pure.jobs.factories import LEASE, NOON, claim, job, running

REPORT = ErrorReport(error_class="builtins.ValueError", error="no", traceback="Traceback", line="ValueError: no")
FIVE = timedelta(seconds=5)
TICK = timedelta(milliseconds=1)
GRACE = timedelta(days=1)


def failed(**given) -> Ending:
    return Ending(**{"outcome": AttemptOutcome.FAILED, "report": REPORT, **given})


def decided(ending: Ending, draw: float = 0.0, **given) -> Outcome:
    return decide(claim(**given), ending, rng=lambda: draw, backoff=Backoff(initial=1, base=2, max=600))


def test_success_ends_the_job_with_its_result():
    outcome = decided(Ending(outcome=AttemptOutcome.SUCCESS, result=[1]), attempts=2)
    assert outcome == Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS, result=[1])


def test_a_failure_under_the_budget_runs_again_after_the_back_off():
    outcome = decided(failed(), attempts=0, max_failures=3)
    assert outcome == Outcome(
        state=State.PENDING,
        attempt=AttemptOutcome.FAILED,
        retry_in=timedelta(seconds=2),
        failures=1,
        report=REPORT,
    )


def test_the_back_off_counts_the_failure_just_seen():
    delays = [decided(failed(), attempts=attempts, max_failures=9).retry_in for attempts in range(3)]
    assert delays == [timedelta(seconds=seconds) for seconds in (2, 4, 8)]


def test_the_last_failure_of_the_budget_is_final():
    outcome = decided(failed(), attempts=2, max_failures=3)
    assert (outcome.state, outcome.failure_reason) == (State.FAILED, FailureReason.EXHAUSTED)
    assert (outcome.failures, outcome.retry_in, outcome.report) == (1, None, REPORT)


@pytest.mark.parametrize("budget", [1, 2, 3, 7])
def test_an_ever_failing_job_runs_as_often_as_its_budget_says(budget):
    runs, attempts, state = 0, 0, State.PENDING
    while state is State.PENDING:
        outcome = decided(failed(), attempts=attempts, max_failures=budget)
        runs, attempts, state = runs + 1, attempts + outcome.failures, outcome.state
    assert (runs, attempts, state) == (budget, budget, State.FAILED)


def test_a_failure_that_must_not_run_again_is_final_whatever_the_budget():
    outcome = decided(failed(retryable=False), max_failures=99)
    assert (outcome.state, outcome.failure_reason, outcome.failures) == (
        State.FAILED,
        FailureReason.NON_RETRYABLE,
        1,
    )


def test_a_final_timeout_has_a_reason_of_its_own():
    outcome = decided(failed(outcome=AttemptOutcome.TIMEOUT), max_failures=1)
    assert (outcome.failure_reason, outcome.attempt) == (FailureReason.TIMEOUT, AttemptOutcome.TIMEOUT)
    assert decided(failed(outcome=AttemptOutcome.TIMEOUT), max_failures=2).state is State.PENDING


def test_a_body_chooses_its_delay_and_the_failure_counts():
    outcome = decided(failed(retry_in=FIVE), max_failures=2)
    assert (outcome.state, outcome.retry_in, outcome.failures) == (State.PENDING, FIVE, 1)
    assert outcome.attempt is AttemptOutcome.FAILED
    assert decided(failed(retry_in=FIVE), attempts=1, max_failures=2).state is State.FAILED


def test_a_snooze_costs_nothing_even_at_the_end_of_the_budget():
    outcome = decided(failed(retry_in=FIVE, counts=False), attempts=0, max_failures=1)
    assert (outcome.state, outcome.retry_in, outcome.failures) == (State.PENDING, FIVE, 0)
    assert outcome.attempt is AttemptOutcome.SNOOZED


def test_a_job_that_runs_at_most_once_never_runs_again_by_itself():
    for ending in (failed(), failed(outcome=AttemptOutcome.TIMEOUT), failed(retryable=False)):
        assert decided(ending, at_most_once=True, max_failures=1).state is State.FAILED
    assert decided(failed(), at_most_once=True, max_failures=9).state is State.FAILED


def test_a_job_that_runs_at_most_once_runs_again_if_its_body_asks():
    for counts in (True, False):
        outcome = decided(failed(retry_in=FIVE, counts=counts), at_most_once=True, max_failures=1)
        assert (outcome.state, outcome.retry_in, outcome.failures) == (State.PENDING, FIVE, 0)
        assert outcome.attempt is AttemptOutcome.SNOOZED


def test_a_canceled_body_ends_the_job_canceled():
    outcome = decided(Ending(outcome=AttemptOutcome.CANCELED, report=REPORT))
    assert outcome == Outcome(state=State.CANCELED, attempt=AttemptOutcome.CANCELED, report=REPORT)


def test_the_attempt_of_a_canceled_job_keeps_what_its_body_did():
    assert canceled(Ending(outcome=AttemptOutcome.SUCCESS, result=7)) == Outcome(
        state=State.CANCELED, attempt=AttemptOutcome.SUCCESS, result=7
    )
    assert canceled(failed()) == Outcome(state=State.CANCELED, attempt=AttemptOutcome.FAILED, report=REPORT)


endings = st.builds(
    Ending,
    outcome=st.sampled_from(AttemptOutcome),
    report=st.just(REPORT),
    retry_in=st.none() | st.just(FIVE),
    counts=st.booleans(),
    retryable=st.booleans(),
)


@given(endings, st.integers(1, 5), st.data(), st.booleans(), st.floats(0, 1, exclude_max=True))
def test_every_decision_is_whole(ending, max_failures, data, at_most_once, draw):
    attempts = data.draw(st.integers(0, max_failures - 1))
    outcome = decided(ending, draw, attempts=attempts, max_failures=max_failures, at_most_once=at_most_once)
    assert (outcome.retry_in is not None) == (outcome.state is State.PENDING)
    assert bool(outcome.failure_reason) == (outcome.state is State.FAILED)
    assert outcome.attempt is not None
    assert outcome.losses == 0
    assert attempts + outcome.failures <= max_failures
    if outcome.state is State.PENDING:
        assert attempts + outcome.failures < max_failures


def test_a_lost_worker_costs_one_loss_and_no_failure():
    row = running(losses=1)
    outcome = decide_loss(row, max_losses=5, rng=lambda: 0.0, backoff=Backoff(initial=1, base=2, max=600))
    assert (outcome.state, outcome.attempt) == (State.PENDING, AttemptOutcome.LOST)
    assert (outcome.failures, outcome.losses, outcome.retry_in) == (0, 1, timedelta(seconds=4))
    assert outcome.report.line == "worker worker-1 stopped reporting"
    assert str(NOON + LEASE) in outcome.report.error


def test_the_last_loss_is_final():
    outcomes = [decide_loss(running(losses=losses), max_losses=3, rng=lambda: 0.0) for losses in range(3)]
    assert [outcome.state for outcome in outcomes] == [State.PENDING, State.PENDING, State.FAILED]
    assert (outcomes[2].failure_reason, outcomes[2].losses) == (FailureReason.LOST, 1)


def test_the_loss_of_a_body_that_runs_at_most_once_is_final():
    outcome = decide_loss(running(at_most_once=True, started_at=NOON), max_losses=5, rng=lambda: 0.0)
    assert (outcome.state, outcome.failure_reason) == (State.FAILED, FailureReason.LOST)
    assert (outcome.attempt, outcome.losses) == (AttemptOutcome.LOST, 1)


def test_a_body_that_runs_at_most_once_and_never_began_goes_back_for_nothing():
    outcome = decide_loss(running(at_most_once=True), max_losses=1, rng=lambda: 0.0)
    assert outcome == Outcome(state=State.PENDING, attempt=None, retry_in=timedelta(0))


def test_a_cancel_request_wins_over_a_loss():
    asked = {"cancel_requested_at": NOON}
    lost = decide_loss(running(**asked), max_losses=1, rng=lambda: 0.0)
    assert (lost.state, lost.attempt, lost.losses) == (State.CANCELED, AttemptOutcome.LOST, 1)
    began = decide_loss(running(at_most_once=True, started_at=NOON, **asked), max_losses=9, rng=lambda: 0.0)
    assert (began.state, began.attempt) == (State.CANCELED, AttemptOutcome.LOST)
    never = decide_loss(running(at_most_once=True, **asked), max_losses=9, rng=lambda: 0.0)
    assert never == Outcome(state=State.CANCELED, attempt=None)


@given(st.booleans(), st.booleans(), st.booleans(), st.integers(0, 3))
def test_every_decision_about_a_loss_is_whole(at_most_once, began, asked, losses):
    row = running(
        at_most_once=at_most_once,
        started_at=NOON if began else None,
        cancel_requested_at=NOON if asked else None,
        losses=losses,
    )
    outcome = decide_loss(row, max_losses=4, rng=lambda: 0.5)
    assert (outcome.retry_in is not None) == (outcome.state is State.PENDING)
    assert bool(outcome.failure_reason) == (outcome.state is State.FAILED)
    assert (outcome.losses == 1) == (outcome.attempt is AttemptOutcome.LOST)
    assert not asked or outcome.state is State.CANCELED
    assert outcome.failures == 0
    assert outcome.state is not State.SUCCESS


def test_a_job_expires_strictly_after_its_instant():
    row = job(expires_at=NOON)
    assert decide_expiry(row, now=NOON, unknown_grace=GRACE) is None
    outcome = decide_expiry(row, now=NOON + TICK, unknown_grace=GRACE)
    assert outcome is not None
    assert (outcome.state, outcome.failure_reason) == (State.FAILED, FailureReason.EXPIRED)
    assert (outcome.attempt, outcome.failures, outcome.losses) == (None, 0, 0)
    assert str(NOON) in outcome.report.line


def test_an_unknown_function_fails_strictly_after_the_grace():
    row = job(fn_path="shop.gone")
    held = running(fn_path="shop.gone", hold=Hold.UNKNOWN_FUNCTION, held_at=NOON)
    assert decide_expiry(row, now=NOON + 9 * GRACE, unknown_grace=GRACE) is None
    assert decide_expiry(held, now=NOON + GRACE, unknown_grace=GRACE) is None
    outcome = decide_expiry(held, now=NOON + GRACE + TICK, unknown_grace=GRACE)
    assert outcome is not None
    assert (outcome.failure_reason, outcome.attempt) == (FailureReason.UNKNOWN_FUNCTION, None)
    assert "shop.gone" in outcome.report.line


def test_another_hold_has_no_grace():
    held = job(hold=Hold.LIMIT)
    assert held.held_at is not None
    assert decide_expiry(held, now=NOON + 9 * GRACE, unknown_grace=GRACE) is None


def test_expiry_comes_before_the_unknown_function():
    held = running(hold=Hold.UNKNOWN_FUNCTION, held_at=NOON, expires_at=NOON)
    outcome = decide_expiry(held, now=NOON + 9 * GRACE, unknown_grace=GRACE)
    assert outcome is not None
    assert outcome.failure_reason == FailureReason.EXPIRED


def test_the_line_of_an_expiry_fits_its_column():
    held = running(fn_path="f" * 255, hold=Hold.UNKNOWN_FUNCTION, held_at=NOON)
    outcome = decide_expiry(held, now=NOON + 9 * GRACE, unknown_grace=GRACE)
    assert outcome is not None
    assert len(outcome.report.line) <= MAX_LINE


def test_three_states_are_terminal():
    assert set(State) - TERMINAL == {"pending", "in_progress"}
