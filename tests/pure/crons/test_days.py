from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_helisched.crons.days import FIRST_DAY, LAST_DAY, calendar_of
from django_helisched.crons.expression import parse_expression
from tests.pure.crons import oracle

DAY = timedelta(days=1)
EPOCH = date(1970, 1, 1)
RULES = (
    "* * *",
    "1 * *",
    "31 * *",
    "29 2 *",
    "30,31 1,2 *",
    "L * *",
    "15,L 2,11 *",
    "*/7 */2 *",
    "* 2 *",
    "* * 1-5",
    "* * 0",
    "* * 5L",
    "* * 1L,0L",
    "* * 3,5L",
    "* * 1#1",
    "* * 2#5",
    "* 2 0#5",
    "13 * 5",
    "L * 1",
    "31 2 1",
    "5 * 0-6",
    "5-5 5-5 *",
)


def rule_of(fields: str):
    return parse_expression(f"0 0 {fields}").days


def number(day: date) -> int:
    return (day - EPOCH).days


@pytest.mark.parametrize("fields", RULES)
@pytest.mark.parametrize("year", [1, 1600, 1899, 1970, 2024, 2026, 2038, 2099, 2100, 9998])
def test_the_days_of_a_year_are_those_of_the_plain_rule(fields, year):
    rule, first, end = rule_of(fields), date(year, 1, 1), date(year + 1, 1, 1)
    days = [first + n * DAY for n in range((end - first).days)]
    expected = [number(day) for day in days if oracle.is_selected(rule, day)]
    calendar = calendar_of(rule)
    assert [day for day in range(number(first), number(end)) if calendar.next(day) == day] == expected
    assert [day for day in range(number(first), number(end)) if calendar.previous(day) == day] == expected
    assert calendar.count(number(first), number(end)) == len(expected)


@settings(derandomize=True, deadline=None)
@given(
    fields=st.sampled_from(RULES),
    start=st.dates(date(1900, 1, 1), date(2200, 1, 1)),
    length=st.integers(0, 1000),
)
def test_a_count_is_the_number_of_days_that_a_search_finds(fields, start, length):
    calendar = calendar_of(rule_of(fields))
    first, end = number(start), number(start) + length
    found = []
    day = calendar.next(first)
    while day is not None and day < end:
        found.append(day)
        day = calendar.next(day + 1)
    assert calendar.count(first, end) == len(found)
    assert [day for day in found if calendar.previous(day) != day] == []


@pytest.mark.parametrize("fields", ["* * *", "1 * *"])
def test_a_search_ends_with_the_calendar(fields):
    calendar = calendar_of(rule_of(fields))
    assert calendar.next(LAST_DAY + 1) is None
    assert calendar.previous(FIRST_DAY - 1) is None
    assert calendar.next(FIRST_DAY - 400) == FIRST_DAY
    assert calendar.previous(LAST_DAY + 400) in {LAST_DAY, LAST_DAY - 30}
    assert calendar.count(FIRST_DAY - 5, FIRST_DAY) == calendar.count(LAST_DAY + 1, LAST_DAY + 5) == 0


def test_a_search_past_the_last_match_finds_none():
    calendar = calendar_of(rule_of("29 2 *"))
    assert calendar.next(number(date(9996, 3, 1))) is None
    assert calendar.previous(number(date(4, 2, 28))) is None
