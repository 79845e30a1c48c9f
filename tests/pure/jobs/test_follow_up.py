from __future__ import annotations

from datetime import timedelta

import pytest

from django_helisched.jobs.follow_up import MAX_RESULT, bounded, follow_up_of, result_of
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State, Trigger
from django_helisched.jobs.outcome import AttemptOutcome, ErrorReport, Outcome
from tests.pure.jobs.factories import NOON, claim, job

LATER = NOON + timedelta(hours=1)


def follow_up(source, **given):
    return follow_up_of(
        source, **{"context": None, "options": {}, "result": {}, "new_id": uuid7(), "now": LATER, **given}
    )


def test_a_job_without_on_complete_has_no_follow_up():
    assert follow_up(job()) is None


def test_a_follow_up_is_due_now_and_tells_how_the_job_ended():
    source, new_id = job(on_complete="shop.done", space="acme", parent_id=uuid7()), uuid7()
    made = follow_up(source, context={"c": [None]}, result={"kind": "canceled"}, new_id=new_id)
    assert made.id == new_id
    assert (made.fn_path, made.trigger, made.space) == ("shop.done", Trigger.ON_COMPLETE, "acme")
    assert (made.created_at, made.due_at, made.next_run_at) == (LATER, LATER, LATER)
    assert made.kwargs == {"job_id": str(source.id), "context": {"c": [None]}, "result": {"kind": "canceled"}}
    assert (made.args, made.context, made.idempotency_key) == ((), None, None)


def test_a_follow_up_has_no_parent_so_that_it_is_not_born_canceled():
    made = follow_up(job(on_complete="shop.done", parent_id=uuid7()))
    assert (made.parent_id, made.parent_fence) == (None, None)


def test_a_follow_up_of_a_claim_is_the_same_as_of_its_row():
    held = claim(on_complete="shop.done", space="s")
    assert follow_up(held).fn_path == "shop.done"


def test_a_follow_up_has_what_was_resolved_when_the_job_was_enqueued():
    resolved = {
        "kind": "action",
        "at_most_once": True,
        "queue": "mail",
        "priority": -3,
        "max_failures": 1,
        "timeout": 2.5,
    }
    made = follow_up(job(on_complete="shop.done", queue="vip", priority=9), options={"on_complete": resolved})
    assert (made.kind, made.at_most_once, made.queue, made.priority) == ("action", True, "mail", -3)
    assert (made.max_failures, made.timeout) == (1, timedelta(seconds=2.5))


def test_a_follow_up_without_anything_resolved_is_a_plain_mutation():
    made = follow_up(job(on_complete="shop.done", queue="vip", priority=9, max_failures=7))
    assert (made.kind, made.queue, made.priority, made.max_failures) == ("mutation", "default", 0, 3)
    assert (made.at_most_once, made.timeout, made.on_complete) == (False, None, "")


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        (
            Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS, result=[1]),
            {"kind": "success", "value": [1]},
        ),
        (Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS), {"kind": "success", "value": None}),
        (
            Outcome(state=State.FAILED, attempt=AttemptOutcome.FAILED, report=ErrorReport(line="E: x", error="long")),
            {"kind": "failed", "error": "E: x"},
        ),
        (Outcome(state=State.CANCELED, attempt=AttemptOutcome.SUCCESS, result=[1]), {"kind": "canceled"}),
        (Outcome(state=State.CANCELED, attempt=None), {"kind": "canceled"}),
    ],
)
def test_each_terminal_state_has_its_own_result(outcome, result):
    assert result_of(outcome) == result


def test_a_value_is_kept_up_to_64_kb_of_json_and_a_note_stands_for_a_larger_one():
    fits = "é" * ((MAX_RESULT - 2) // 2)
    assert bounded(fits) == fits
    assert bounded(fits + "é") == {"note": f"a value of {MAX_RESULT + 2} bytes was left out"}
    assert result_of(Outcome(state=State.SUCCESS, attempt=None, result=fits + "é"))["value"] == bounded(fits + "é")
