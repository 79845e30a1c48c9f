"""How a body ends, and what becomes of its job."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched import scheduler
from django_helisched.driver.events import What
from django_helisched.jobs.job import State
from django_helisched.signals import job_settled
from tests.app import jobs as bodies
from tests.driver.conftest import START

if TYPE_CHECKING:
    from django_helisched.driver import Driver


def test_a_failure_is_tried_again_after_its_back_off(driver: Driver, jobs, clock, events):
    job = bodies.fail_until.enqueue(3)
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.attempts, row.last_error) == (State.PENDING, 1, "Broken: attempt 1")
    # 0.25 s times 2 squared, times 0.75 by the test's random number.
    assert row.next_run_at - START == timedelta(seconds=0.75)
    assert events.of(What.JOB_RETRIED)[0].retry_in == timedelta(seconds=0.75)
    for _ in range(2):
        clock.advance(60)
        driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.attempts, row.last_error) == (State.SUCCESS, 2, "")
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["failed", "failed", "success"]


def test_the_last_failure_is_final_and_calls_back_once(driver: Driver, jobs, clock):
    job = bodies.fail_until.using(max_failures=2, on_complete=bodies.told, context={"k": 1}).enqueue(9)
    for _ in range(3):
        driver.tick()
        clock.advance(60)
    row = jobs.get(job.id)
    assert (row.state, row.failure_reason) == (State.FAILED, "exhausted")
    assert bodies.seen == [({"k": 1}, "failed")]


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError"])
@pytest.mark.parametrize("body", [bodies.raise_this, bodies.raise_async], ids=["plain", "async"])
def test_what_would_end_a_process_or_a_loop_is_a_failure_of_its_job_alone(driver: Driver, jobs, name, body):
    job = body.using(max_failures=1).enqueue(name)
    other = bodies.tell.enqueue("other")
    assert driver.tick().claimed == 2
    row = jobs.get(job.id)
    assert (row.state, row.failure_reason) == (State.FAILED, "exhausted")
    assert name in jobs.attempts_of(job.id)[0].error_class
    assert jobs.get(other.id).state == State.SUCCESS


def test_an_exception_that_cannot_be_shown_is_recorded_all_the_same(driver: Driver, jobs):
    job = bodies.raise_this.using(max_failures=1).enqueue("Unprintable")
    driver.tick()
    (attempt,) = jobs.attempts_of(job.id)
    assert attempt.outcome == "failed"
    assert "raised ValueError" in attempt.error


def test_nul_and_surrogates_in_an_error_are_shown_as_escapes(driver: Driver, jobs):
    job = bodies.raise_this.using(max_failures=1).enqueue("NUL")
    driver.tick()
    assert jobs.get(job.id).last_error == "ValueError: a \\x00 and a \\udcff"


def test_a_traceback_begins_in_the_body(driver: Driver, jobs):
    job = bodies.fail_until.using(max_failures=1).enqueue(2)
    driver.tick()
    (attempt,) = jobs.attempts_of(job.id)
    assert "tests/app/jobs.py" in attempt.traceback.splitlines()[1]
    assert "driver" not in attempt.traceback


def test_non_retryable_fails_at_once_whatever_budget_is_left(driver: Driver, jobs):
    job = bodies.raise_this.enqueue("NonRetryable")
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.failure_reason, row.attempts) == (State.FAILED, "non_retryable", 1)


def test_retry_later_chooses_the_delay_and_spends_budget(driver: Driver, jobs):
    job = bodies.raise_this.enqueue("RetryLater")
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.attempts, row.next_run_at - START) == (State.PENDING, 1, timedelta(seconds=40))


def test_a_snooze_spends_no_budget(driver: Driver, jobs, events):
    job = bodies.raise_this.using(max_failures=1).enqueue("snooze")
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.attempts, row.next_run_at - START) == (State.PENDING, 0, timedelta(seconds=40))
    assert jobs.attempts_of(job.id)[0].outcome == "snoozed"
    assert [event.retry_in for event in events.of(What.JOB_SNOOZED)] == [timedelta(seconds=40)]


def test_at_most_once_is_not_repeated_after_a_failure(driver: Driver, jobs, clock):
    job = bodies.once.enqueue("a")
    for _ in range(3):
        driver.tick()
        clock.advance(600)
    assert bodies.seen == ["a"]
    assert jobs.get(job.id).state == State.FAILED


def test_the_start_of_an_at_most_once_body_is_written_before_it_runs(driver: Driver, store):
    bodies.once.enqueue("a")
    driver.tick()
    assert store.calls.index("start") < store.calls.index("settle")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("object", "of type object"),
        ("set", "is a set"),
        ("self-reference", "deeper than"),
        ("huge integer", "digits"),
        ("long", "MAX_ARGS_BYTES"),
    ],
)
def test_a_result_that_cannot_be_stored_leaves_a_note_and_the_job_succeeds(driver: Driver, jobs, name, told):
    job = bodies.return_this.enqueue(name)
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.attempts) == (State.SUCCESS, 0)
    (attempt,) = jobs.attempts_of(job.id)
    assert attempt.result is None
    assert attempt.error_class == "django_helisched.ResultNotStored"
    assert told in attempt.error


def test_nul_and_surrogates_in_a_result_are_stored_as_escapes(driver: Driver, jobs):
    job = bodies.return_this.enqueue("NUL")
    driver.tick()
    (attempt,) = jobs.attempts_of(job.id)
    assert attempt.result == {"a\\x00": ["b\\udcff"]}
    assert attempt.error == ""


def test_a_function_that_returns_a_coroutine_is_told_so(driver: Driver, jobs):
    job = bodies.return_coroutine.enqueue()
    driver.tick()
    row = jobs.get(job.id)
    assert row.failure_reason == "non_retryable"
    assert "async def" in row.last_error


def test_success_calls_back_in_the_same_transaction(driver: Driver, jobs):
    bodies.note.using(on_complete=bodies.told, context="c").enqueue("a")
    driver.tick()
    driver.tick()
    assert bodies.seen == ["a", ("c", "success")]


def test_a_job_canceled_while_it_runs_ends_canceled_and_its_attempt_says_what_it_did(driver: Driver, jobs, events):
    job = bodies.tell.using(on_complete=bodies.told).enqueue("a")

    def cancel(event: Any) -> None:
        events.append(event)
        if event.what is What.JOB_STARTED:
            scheduler.cancel(job)

    driver._announce._observe = cancel
    driver.tick()
    assert jobs.get(job.id).state == State.CANCELED
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["success"]
    driver.tick()
    assert bodies.seen == ["a", (None, "canceled")]


def test_a_job_asked_to_stop_is_never_retried(driver: Driver, jobs):
    job = bodies.fail_until.enqueue(9)
    driver._announce._observe = lambda event: scheduler.cancel(job) if event.what is What.JOB_STARTED else None
    driver.tick()
    row = jobs.get(job.id)
    assert (row.state, row.attempts) == (State.CANCELED, 0)


def test_a_result_whose_claim_is_lost_is_dropped(driver: Driver, jobs, events):
    job = bodies.tell.using(on_complete=bodies.told).enqueue("a")

    def force(event: Any) -> None:
        events.append(event)
        if event.what is What.JOB_STARTED:
            scheduler.cancel(job, force=True)

    driver._announce._observe = force
    driver.tick()
    row = jobs.get(job.id)
    assert row.state == State.CANCELED
    assert "job.lost" in events.whats()
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["canceled"]


def test_receivers_learn_of_a_settled_job_and_cannot_change_it(driver: Driver, jobs):
    heard: list[Any] = []

    def hear(job_id: Any, outcome: Any, **_: Any) -> None:
        heard.append((job_id, outcome.state, jobs.get(job_id).state))
        raise SystemExit(5)

    job_settled.connect(hear)
    try:
        job = bodies.note.enqueue("a")
        driver.tick()
    finally:
        job_settled.disconnect(hear)
    assert heard == [(job.id, State.SUCCESS, State.SUCCESS)]
    assert jobs.get(job.id).state == State.SUCCESS
