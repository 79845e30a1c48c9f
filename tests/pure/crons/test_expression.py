from __future__ import annotations

import string
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_helisched.crons.expression import ALIASES, CronExpression, parse_expression
from django_helisched.crons.spec import InvalidSchedule, notices

REFUSALS = {
    "61 2 * * *": "minute 61 is out of range 0-59",
    "0 24 * * *": "hour 24 is out of range 0-23",
    "0 0 0 * *": "day of month 0 is out of range 1-31",
    "0 0 * 13 *": "month 13 is out of range 1-12",
    "0 0 * * 8": "weekday 8 is out of range 0-7",
    "0 22-2 * * *": "the hour range 22-2 runs backwards; write two ranges, such as 22-23,0-2",
    "0 9 * * FRI-MON": "the weekday range FRI-MON runs backwards; write two ranges, such as 5-7,0-1",
    "0 0 1 NOV-FEB *": "the month range NOV-FEB runs backwards; write two ranges, such as 11-12,1-2",
    "*/0 * * * *": "the minute step must be a whole number of 1 or more",
    "*/99999999999 * * * *": "the minute step 99999999999 is too large",
    "1-3-5 * * * *": 'the minute range "1-3-5" needs two ends, as in 1-5',
    "5,,6 * * * *": "the minute list has an empty member",
    "5, * * * *": "the minute list has an empty member",
    "1-1000000000 * * * *": "minute 1000000000 is out of range 0-59",
    "0.5 1.5 * * *": 'minute "0.5" must be a number from 0 to 59',
    "1_0 * * * *": 'minute "1_0" must be a number from 0 to 59',
    "0 0 * * MO": 'weekday "MO" must be a number from 0 to 7 or a name from sun to sat',
    "0 0 15W * *": "W (the nearest workday) is not supported",
    "H * * * *": "H (a hashed value) is not supported; use jitter to spread crons",
    "R * * * *": "R (a random value) is not supported; use jitter to spread crons",
    "0 0 * * L": "L stands alone as a day of month, or after a weekday as in 5L",
    "0 0 * * MON#L": '"L" after # must be 1 to 5: no month has more of a weekday',
    "0 0 * * 5#6": '"6" after # must be 1 to 5: no month has more of a weekday',
    "0 0 * * 1,2#1": "# and ? cannot stand in a list",
    "0 0 ?,5 * *": "# and ? cannot stand in a list",
    "0 0 ?/2 * *": 'day of month "?" must be a number from 1 to 31',
    "@every 5m": "@every is not supported; declare an interval instead of a cron",
    "@hourly now": '"@hourly" is none of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, alone',
    "@reboot": (
        "@reboot is not a time; to run a job when a process starts, call its enqueue() in the code that "
        "starts the process"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_says_the_reason_and_points_at_the_place(text):
    with pytest.raises(InvalidSchedule) as refusal:
        parse_expression(text)
    error = refusal.value
    assert error.reason == REFUSALS[text]
    assert str(error) == f'"{text}": {REFUSALS[text]}.'
    line, carets = error.pointer.split("\n")
    assert line == text
    assert carets.strip(" ^") == ""
    assert "^" in carets


@pytest.mark.parametrize(
    ("text", "carets"),
    [
        ("61 2 * * *", "^^"),
        ("0 2,24 * * *", "    ^^"),
        ("0 0 1-32 * *", "      ^^"),
        ("\t0  0 * * 1#9", "            ^"),
        ("0 0 * * *é", "         ^"),
    ],
)
def test_the_carets_stand_under_the_part_to_blame(text, carets):
    with pytest.raises(InvalidSchedule) as refusal:
        parse_expression(text)
    assert refusal.value.pointer.split("\n")[1] == carets


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 0 30 2 *", '"0 0 30 2 *" never fires: February has no day 30.'),
        ("0 0 31 4 *", '"0 0 31 4 *" never fires: April has no day 31.'),
        ("0 0 30,31 2 *", '"0 0 30,31 2 *" never fires: February has no day 30 or 31.'),
        ("0 0 31 2,4,6 *", '"0 0 31 2,4,6 *" never fires: February, April and June have no day 31.'),
        ("* * * 31 nov ?", '"* * * 31 nov ?" never fires: November has no day 31.'),
        ("", "The cron expression is blank; write five fields: minute hour day month weekday."),
        (" \t ", "The cron expression is blank; write five fields: minute hour day month weekday."),
        ("5", '"5" has 1 field; write 5 (minute hour day month weekday), or 6 with seconds first.'),
        (
            "0 0 1 1 * * 2030",
            '"0 0 1 1 * * 2030" has 7 fields; write 5 (minute hour day month weekday), or 6 with seconds first.',
        ),
        ("٣ * * * *", '"٣ * * * *": the character "٣" is not allowed; an expression is one line of ASCII.'),
        ("0 0\n* * *", '"0 0\\n* * *": the character "\\n" is not allowed; an expression is one line of ASCII.'),
        ("*" * 1001, f'"{"*" * 77}..." has 1001 characters; a cron expression has at most 1000.'),
    ],
)
def test_what_can_never_fire_or_is_no_expression_is_refused_in_a_sentence(text, message):
    with pytest.raises(InvalidSchedule) as refusal:
        parse_expression(text)
    assert str(refusal.value) == message


def test_a_refusal_of_the_whole_points_nowhere():
    with pytest.raises(InvalidSchedule) as refusal:
        parse_expression("0 0 30 2 *")
    assert refusal.value.pointer == ""


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["*"] * 5])
def test_only_text_is_an_expression(value):
    with pytest.raises(InvalidSchedule, match="A cron expression is text, not"):
        parse_expression(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@Monthly", "0 0 1 * *"),
        (" @yearly ", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("007 09 01 01 *", "7 9 1 1 *"),
        ("0 0 * * 7", "0 0 * * sun"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * jan-mar/2 MON", "0 0 * 1,3 1"),
        ("5/15 * * * *", "5,20,35,50 * * * *"),
        ("0 0 * * 1/2", "0 0 * * 0,1,3,5"),
        ("*/90 * * * *", "0 * * * *"),
        ("*,5 * * * *", "* * * * *"),
        ("3,1,2,2 * * * *", "1-3 * * * *"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 1-31 * 1", "0 0 * * 1"),
        ("0 0 1 * 0-7", "0 0 1 * *"),
        ("0 0 1 * */1", "0 0 1 * *"),
        ("0 0 1 * 1-7", "0 0 1 * *"),
        ("0 0 * * FRIL", "0 0 * * 5l"),
        ("0 0 12 * * 1#2", "0 12 * * mon#2"),
    ],
)
def test_two_ways_to_write_one_schedule_mean_the_same(one, other):
    first, second = parse_expression(one), parse_expression(other)
    assert (first.seconds, first.minutes, first.hours) == (second.seconds, second.minutes, second.hours)
    assert selected(first) == selected(second)


def selected(expression: CronExpression):
    days = expression.days
    month_days = (days.month_days, days.last_day) if days.by_month_day else None
    weekdays = (days.weekdays, days.last_weekdays, days.nth_weekday) if days.by_weekday else None
    return days.months, month_days, weekdays


@pytest.mark.parametrize("field", ["*/2", "0-6", "0,1,2,3,4,5,6", "sun-sat"])
def test_a_week_not_written_up_to_seven_restricts_and_so_means_either(field):
    assert parse_expression(f"0 0 1 * {field}").days.by_weekday


@pytest.mark.parametrize("field", ["*", "0-7", "1-7", "1,2,3,4,5,6,7", "0/1", "?"])
def test_a_week_written_up_to_seven_does_not_restrict(field):
    assert not parse_expression(f"0 0 1 * {field}").days.by_weekday


def test_blanks_are_made_equal_and_the_rest_of_the_text_is_kept():
    assert parse_expression("\t*/5  *\t* * MON \n").text == "*/5 * * * MON"


@pytest.mark.parametrize("text", [*ALIASES, "* * * * *", "0 9 * * mon-fri", "0 0 1 * *", "30 0 12 * * *"])
def test_a_plain_expression_has_no_notices(text):
    assert notices(text) == ()


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("0 0 1 * 1", "Day of month and weekday are both restricted: "),
        ("0 0 */2 * 3", "Day of month and weekday are both restricted: "),
        ("0 0 1 * 0-6", "This weekday field selects every day, so the day of month has no effect."),
        ("*/90 * * * *", "The minute step 90 is wider than its range: only minute 0 is selected."),
        ("0 10-12/5 * * *", "The hour step 5 is wider than its range: only hour 10 is selected."),
        ("* 0 9 * * *", "With six fields the first is seconds: the cron fires 60 times in each minute that matches."),
    ],
)
def test_what_is_legal_but_easily_meant_otherwise_is_said(text, notice):
    assert notices(parse_expression(text))[0].startswith(notice)


def read(text: str) -> CronExpression | InvalidSchedule:
    try:
        return parse_expression(text)
    except InvalidSchedule as refusal:
        return refusal


PARTS = "* ? L 5L 1#2 */5 1-5 mon jan-mar 0/7 31 29 59 60 , - / # 1,2 1-5/2 5-1"
nearly_cron = st.text(alphabet=string.digits + "*,-/?#LWHR@ \tMONJAFE\x00é", max_size=60)
fields = st.lists(st.sampled_from(PARTS.split(" ")))


@settings(derandomize=True, max_examples=1500, deadline=timedelta(milliseconds=500))
@given(text=nearly_cron | fields.map(" ".join) | st.text(max_size=30))
def test_any_text_is_read_or_refused_with_a_reason(text):
    answer = read(text)
    if isinstance(answer, InvalidSchedule):
        assert answer.reason
        assert str(answer).endswith(".")
        assert answer.position is None or 0 <= answer.position <= len(text)
    else:
        assert parse_expression(answer.text).days == answer.days
        assert answer.seconds
        assert answer.minutes
        assert answer.hours
