from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_helisched.crons.occurrences import (
    compute_next_run,
    compute_prev_run,
    count_occurrences,
    first_occurrence,
    occurrences_between,
)
from django_helisched.crons.spec import CronSpec, IntervalSpec
from tests.pure.crons import oracle
from tests.pure.crons.questions import following, preceding

MICROSECOND = timedelta(microseconds=1)
ZONES = oracle.zone_names()
thoroughly = settings(derandomize=True, deadline=None, max_examples=150)

# Fixed hours, all hours, seconds, both day fields, last days: each meets a change in its own way.
EXPRESSIONS = (
    "30 2 * * *",
    "0 0 * * *",
    "*/15 1,2 * * *",
    "15-45/30 0,23 * * *",
    "0,30 1-23/2 * * *",
    "*/20 * * * *",
    "7 * L * 1",
    "*/40 30 0-3 * * *",
    "0 */4 1-31/2 * 2-6/2",
    "59 59 23 L * *",
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def all_between(spec: CronSpec, key: str, first: datetime, last: datetime) -> list[datetime]:
    """Walk forward from ``first`` with its results fed back."""
    found = []
    after = compute_next_run(spec, key, first - MICROSECOND)
    while after is not None and after <= last:
        found.append(after)
        after = compute_next_run(spec, key, after)
    return found


def all_back(spec: CronSpec, key: str, first: datetime, last: datetime) -> list[datetime]:
    found = []
    at = compute_prev_run(spec, key, last)
    while at is not None and at >= first:
        found.append(at)
        at = compute_prev_run(spec, key, at - MICROSECOND)
    return found[::-1]


@pytest.mark.parametrize("part", range(4))
def test_around_the_changes_of_every_zone_next_prev_and_count_are_the_plain_rule(part):
    rng = random.Random(part)
    for key in ZONES[part::4]:
        changes = oracle.changes(key)
        for at, *_ in {rng.choice(changes), changes[-1]} if changes else ():
            spec = CronSpec(rng.choice(EXPRESSIONS))
            first = oracle.moment(at) - timedelta(hours=rng.randrange(3, 27))
            last = oracle.moment(at) + timedelta(hours=rng.randrange(3, 40))
            expected = oracle.instants(spec.expression, key, first, last)
            assert all_between(spec, key, first, last) == expected, (key, spec, first)
            assert all_back(spec, key, first, last) == expected, (key, spec, first)
            assert count_occurrences(spec, key, first - MICROSECOND, last) == len(expected), (key, spec, first)
            middle = oracle.moment(at + rng.randrange(-7200, 7200))
            assert count_occurrences(spec, key, middle, last) == sum(middle < each for each in expected)


@pytest.mark.parametrize(
    ("key", "day"),
    [
        ("Australia/Lord_Howe", "2026-04-05"),
        ("Australia/Lord_Howe", "2026-10-04"),
        ("Antarctica/Troll", "2027-03-28"),
        ("Antarctica/Troll", "2027-10-31"),
        ("Pacific/Apia", "2011-12-30"),
        ("Pacific/Kwajalein", "1969-09-30"),
        ("Pacific/Kiritimati", "1994-12-31"),
        ("America/Juneau", "1867-10-18"),
        ("Asia/Manila", "1844-12-31"),
        ("Africa/Casablanca", "2026-02-15"),
        ("Africa/Casablanca", "2087-05-11"),
        ("Asia/Beirut", "2027-03-28"),
        ("America/Havana", "2026-03-08"),
        ("America/Havana", "2026-11-01"),
        ("Africa/Cairo", "2026-04-24"),
        ("America/Scoresbysund", "2024-03-31"),
        ("Europe/Dublin", "2026-10-25"),
        ("America/Santiago", "2150-09-05"),
        ("Asia/Gaza", "2040-10-20"),
        ("Asia/Pyongyang", "2018-05-04"),
        ("Europe/Amsterdam", "1937-07-01"),
        ("Africa/Monrovia", "1972-01-07"),
        ("America/Caracas", "2007-12-09"),
        ("Europe/Paris", "9990-03-26"),
    ],
)
@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_famous_changes_are_the_plain_rule(expr, key, day):
    spec = CronSpec(expr)
    first, last = utc(day + "T00:00Z") - timedelta(days=2, hours=5), utc(day + "T00:00Z") + timedelta(days=3)
    expected = oracle.instants(spec.expression, key, first, last)
    assert all_between(spec, key, first, last) == expected
    assert all_back(spec, key, first, last) == expected
    assert count_occurrences(spec, key, first - MICROSECOND, last) == len(expected)


@st.composite
def expressions(draw) -> str:
    """Write lists of plain values: what they mean needs no parser."""
    number = st.lists(st.integers(0, 59), min_size=1, max_size=3).map(sorted)
    hour = st.lists(st.integers(0, 23), min_size=1, max_size=4)
    fields = [
        draw(number.map(join) | st.just("0")),
        draw(number.map(join) | st.just("*")),
        draw(hour.map(join) | st.just("*")),
        draw(st.sampled_from(["*", "1-7", "L", "29", "31", "*/2", "15,L"])),
        draw(st.sampled_from(["*", "*", "2-4", "3,9-11"])),
        draw(st.sampled_from(["*", "*", "1-5", "0", "5L", "1#5", "*/2"])),
    ]
    return " ".join(fields)


def join(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


# hypothesis takes naive bounds and adds the zone.
moments = st.datetimes(datetime(1830, 1, 1), datetime(2400, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@thoroughly
@given(expr=expressions(), key=st.sampled_from(ZONES), at=moments)
def test_next_and_prev_mirror_each_other(expr, key, at):
    spec = CronSpec(expr)
    later, earlier = following(spec, key, at), preceding(spec, key, at)
    assert earlier <= at < later
    assert earlier.microsecond == later.microsecond == 0
    assert following(spec, key, earlier) == later
    assert preceding(spec, key, later) == later
    assert preceding(spec, key, later - MICROSECOND) == earlier
    assert following(spec, key, earlier - MICROSECOND) == earlier
    assert count_occurrences(spec, key, earlier - MICROSECOND, later) == 2
    assert count_occurrences(spec, key, earlier, later - MICROSECOND) == 0


@thoroughly
@given(expr=expressions(), key=st.sampled_from(ZONES), at=moments, steps=st.integers(1, 40))
def test_results_fed_back_advance_and_are_counted(expr, key, at, steps):
    spec = CronSpec(expr)
    walked = [at]
    for _ in range(steps):
        walked.append(compute_next_run(spec, key, walked[-1]))
    assert walked == sorted(set(walked))
    assert count_occurrences(spec, key, at, walked[-1]) == steps
    assert occurrences_between(spec, key, at, walked[-1], steps + 5) == walked[1:]
    newest = max(1, steps // 2)
    assert occurrences_between(spec, key, at, walked[-1], newest) == walked[-newest:]


@thoroughly
@given(expr=expressions(), key=st.sampled_from(ZONES), at=moments, data=st.data())
def test_counts_add_up_wherever_they_are_cut(expr, key, at, data):
    spec = CronSpec(expr)
    last = at + data.draw(st.timedeltas(timedelta(0), timedelta(days=3000)))
    cut = at + data.draw(st.timedeltas(timedelta(0), last - at))
    whole = count_occurrences(spec, key, at, last)
    assert count_occurrences(spec, key, at, cut) + count_occurrences(spec, key, cut, last) == whole


@pytest.mark.parametrize("year", [1900, 1969, 2011, 2026, 2086, 2501])
def test_a_fixed_time_fires_once_per_local_day_in_every_zone(year):
    for key in ZONES:
        start, end = oracle.seconds(f"{year}-01-15T12:00Z"), oracle.seconds(f"{year}-12-14T12:00Z")
        first, last = start - oracle.offset(key, start), end - oracle.offset(key, end)
        # A whole day left out: its time falls together with that of the next day.
        lost_days = sum(after - before == 86400 for at, before, after in oracle.changes(key) if first < at < last)
        for expr in ("30 2 * * *", "0 0 * * *", "15 30 23 * * *"):
            counted = count_occurrences(CronSpec(expr), key, oracle.moment(first), oracle.moment(last))
            assert counted == (end - start) // 86400 - lost_days, (key, expr)


@pytest.mark.parametrize("year", [1996, 2011, 2026, 2086, 2501])
def test_all_24_hours_keep_an_even_pace_through_gaps_and_overlaps_in_every_zone(year):
    first, last = (
        oracle.moment(oracle.seconds(f"{year}-01-01T00:00Z")),
        oracle.moment(oracle.seconds(f"{year}-12-31T00:00Z")),
    )
    elapsed = (last - first) // timedelta(seconds=1)
    for key in ZONES:
        assert count_occurrences(CronSpec("* * * * * *"), key, first, last) == elapsed, key
        assert count_occurrences(CronSpec("*/15 0-23 * * *"), key, first, last) == elapsed // 900, key


def test_prev_at_a_thirty_minute_overlap_leaves_nothing_out():
    at = datetime(2026, 4, 5, 1, 30, 0, 500_000, tzinfo=timezone(timedelta(hours=10, minutes=30)))
    assert compute_prev_run(CronSpec("*/20 * * * *"), "Australia/Lord_Howe", at) == utc("2026-04-05T01:40+11:00")


def test_next_is_strictly_after_and_prev_includes_the_instant_itself():
    every_minute, at = CronSpec("* * * * *"), utc("2026-01-01T00:01Z")
    assert compute_next_run(every_minute, "UTC", at) == utc("2026-01-01T00:02Z")
    assert compute_next_run(every_minute, "UTC", at - MICROSECOND) == at
    assert compute_prev_run(every_minute, "UTC", at) == at
    assert compute_prev_run(every_minute, "UTC", at - MICROSECOND) == utc("2026-01-01T00:00Z")


@pytest.mark.parametrize(
    ("expr", "after", "expected"),
    [
        ("0 0 29 2 *", "2096-03-01T00:00Z", "2104-02-29T00:00Z"),
        ("0 0 * 2 1#5", "2072-02-29T00:00Z", "2112-02-29T00:00Z"),
        ("0 0 29 2 *", "1896-03-01T00:00Z", "1904-02-29T00:00Z"),
        ("15 22 29 2 *", "2024-02-29T00:00Z", "2024-02-29T22:15Z"),
        ("0 0 31 4,5 *", "2029-03-26T09:22:30Z", "2029-05-31T00:00Z"),
        ("0 0 30 2 1", "2026-01-01T00:00Z", "2026-02-02T00:00Z"),
        ("0 0 1 * */2", "2026-01-31T12:00Z", "2026-02-01T00:00Z"),
        ("0 0 */2 * 3", "2026-01-05T00:00Z", "2026-01-07T00:00Z"),
        ("0 0 * * 1,5L", "2026-01-27T00:00Z", "2026-01-30T00:00Z"),
    ],
)
def test_rare_dates_are_found(expr, after, expected):
    assert compute_next_run(CronSpec(expr), "UTC", utc(after)) == utc(expected)
    assert compute_prev_run(CronSpec(expr), "UTC", utc(expected)) == utc(expected)


@pytest.mark.parametrize("key", ["UTC", "Pacific/Kiritimati", "Pacific/Marquesas", "America/New_York"])
def test_there_is_nothing_beyond_the_calendar(key):
    yearly, every_second = CronSpec("0 0 1 1 *"), CronSpec("* * * * * *")
    last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
    assert compute_next_run(yearly, key, utc("9999-01-03T00:00Z")) is None
    assert compute_next_run(every_second, key, last) is None
    assert compute_next_run(CronSpec("0 0 * 2 1#5"), key, utc("9990-01-03T00:00Z")) is None
    assert compute_prev_run(CronSpec("0 0 1 6 *"), key, utc("0001-03-01T00:00Z")) is None
    assert preceding(yearly, key, last) > utc("9998-12-31T00:00Z")
    assert following(yearly, key, first) < utc("0002-01-02T00:00Z")
    assert occurrences_between(CronSpec("0 0 * * *"), key, first, utc("0001-01-03T12:00Z"), 10)


def test_a_second_pass_in_the_last_november_of_the_calendar_is_not_forgotten():
    spec = CronSpec("30 * * 1-11 *")
    last = preceding(spec, "America/New_York", datetime.max.replace(tzinfo=UTC))
    assert last == utc("9999-12-01T04:30Z")
    assert compute_next_run(spec, "America/New_York", last) is None


def test_any_aware_datetime_will_do_and_utc_comes_back():
    berlin = oracle.zone("Europe/Berlin")
    # Both are 02:30 on the clock; the second pass is an hour later.
    first, second = (datetime(2027, 10, 31, 2, 30, tzinfo=berlin, fold=fold) for fold in (0, 1))
    spec = CronSpec("*/30 * * * *")
    assert compute_next_run(spec, "Europe/Berlin", first) == utc("2027-10-31T01:00Z")
    assert compute_next_run(spec, "Europe/Berlin", second) == utc("2027-10-31T02:00Z")
    assert following(spec, "Europe/Berlin", second).tzinfo is UTC


def test_a_naive_datetime_is_refused():
    with pytest.raises(ValueError, match="has no time zone"):
        compute_next_run(CronSpec("* * * * *"), "UTC", datetime(2026, 1, 1))  # noqa: DTZ001


def test_an_interval_without_an_anchor_counts_from_the_instant_itself():
    at = datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)
    assert compute_next_run(IntervalSpec(90_000), "UTC", at) == at + timedelta(seconds=90)


def test_an_interval_keeps_the_phase_of_its_anchor():
    anchor = utc("1970-01-01T00:00Z")
    after = anchor + timedelta(seconds=150)
    found = compute_next_run({"kind": "interval", "ms": 60_000}, "UTC", after, anchor=anchor)
    assert found == anchor + timedelta(seconds=180)


@thoroughly
@given(ms=st.integers(1, 10**10), anchor=moments, at=moments)
def test_an_interval_falls_on_its_grid_and_advances(ms, anchor, at):
    spec, period = IntervalSpec(ms), timedelta(milliseconds=ms)
    grid = anchor.replace(microsecond=anchor.microsecond // 1000 * 1000)
    later = following(spec, "UTC", at, anchor=anchor)
    assert at < later <= at + period
    assert (later - grid) % period == timedelta(0)
    assert following(spec, "UTC", later, anchor=anchor) == later + period
    until = at + 7 * period
    assert count_occurrences(spec, "UTC", at, until, anchor=anchor) == 7
    newest = occurrences_between(spec, "UTC", at, until, 3, anchor=anchor)
    assert newest == [later + n * period for n in (4, 5, 6)]


def test_the_previous_run_of_an_interval_is_refused():
    with pytest.raises(TypeError, match="an interval needs an anchor"):
        compute_prev_run({"kind": "interval", "ms": 1000}, "UTC", utc("2026-01-01T00:00Z"))


def test_an_interval_ends_with_the_calendar():
    last = datetime.max.replace(tzinfo=UTC)
    assert compute_next_run(IntervalSpec(1000), "UTC", last, anchor=utc("2026-01-01T00:00Z")) is None


def test_a_list_that_reaches_the_first_instant_of_the_calendar_ends_there():
    first = datetime.min.replace(tzinfo=UTC)
    spec, until = IntervalSpec(1000), first + timedelta(seconds=2)
    assert occurrences_between(spec, "UTC", first, until, 9, anchor=first) == [until - timedelta(seconds=1), until]


def test_the_first_occurrence_lies_within_start_and_end_both_included():
    daily, now = CronSpec("0 9 * * *"), utc("2026-01-01T09:00Z")
    assert first_occurrence(daily, "UTC", now) == utc("2026-01-02T09:00Z")
    assert first_occurrence(daily, "UTC", now, start=utc("2026-02-01T09:00Z")) == utc("2026-02-01T09:00Z")
    assert first_occurrence(daily, "UTC", now, start=utc("2025-01-01T00:00Z")) == utc("2026-01-02T09:00Z")
    assert first_occurrence(daily, "UTC", now, end=utc("2026-01-02T09:00Z")) == utc("2026-01-02T09:00Z")
    assert first_occurrence(daily, "UTC", now, end=utc("2026-01-02T08:59Z")) is None


def test_none_are_listed_where_none_are_asked_for():
    at = utc("2026-01-01T09:00Z")
    assert occurrences_between(CronSpec("* * * * *"), "UTC", at, at + timedelta(days=1), 0) == []
    assert occurrences_between(CronSpec("* * * * *"), "UTC", at, at, 5) == []
    assert count_occurrences(CronSpec("* * * * *"), "UTC", at, at - timedelta(days=1)) == 0
