"""Every line of the case files, exactly."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from django_helisched.crons.expression import parse_expression
from django_helisched.crons.occurrences import compute_prev_run, count_occurrences
from django_helisched.crons.spec import CronSpec, InvalidSchedule
from tests.pure.crons.questions import following, preceding

CASES = Path(__file__).parents[2] / "cases"


def lines_of(name: str):
    text = (CASES / f"cron_{name}.jsonl").read_text(encoding="utf-8")
    cases = [json.loads(line) for line in text.splitlines()]
    return [pytest.param(case, id=f"{name}-{number}-{case['id']}") for number, case in enumerate(cases, 1)]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize("case", [*lines_of("settled"), *lines_of("judged")])
def test_the_next_five_and_the_previous_two_are_as_the_case_says(case):
    spec, zone = CronSpec(case["expr"]), case["tz"]
    after = before = instant(case["after_utc"])
    coming, gone = [], []
    for _ in case["next"]:
        after = following(spec, zone, after)
        coming.append(after)
    for _ in case["prev"]:
        before = preceding(spec, zone, before - timedelta(microseconds=1))
        gone.append(before)
    assert coming == [instant(text) for text in case["next"]]
    assert gone == [instant(text) for text in case["prev"]]


@pytest.mark.parametrize("case", lines_of("counts"))
def test_the_count_and_the_latest_occurrence_are_as_the_case_says(case):
    spec, zone, first, last = CronSpec(case["expr"]), case["tz"], instant(case["from_utc"]), instant(case["to_utc"])
    assert count_occurrences(spec, zone, first, last) == case["count"]
    assert compute_prev_run(spec, zone, last) == instant(case["last_at_or_before_to"])


@pytest.mark.parametrize("case", lines_of("invalid"))
def test_the_grammar_accepts_and_rejects_as_the_case_says(case):
    if case["expect"] == "accept":
        parse_expression(case["expr"])
        return
    with pytest.raises(InvalidSchedule) as refusal:
        parse_expression(case["expr"])
    assert refusal.value.reason


@pytest.mark.parametrize("case", lines_of("faults"))
def test_a_fault_that_others_have_shown_is_not_ours(case):
    after = instant(case["start_utc"])
    found = []
    for _ in case["next_utc"]:
        after = following(CronSpec(case["expr"]), case["tz"], after)
        found.append(after)
    assert found == [instant(text) for text in case["next_utc"]]
