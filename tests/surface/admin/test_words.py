"""Durations, instants, schedules and values as people read them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from django_helisched.admin import arguments, filters, schedules, times
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.jobs.ids import uuid7

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.35, "350 ms"),
        (2.4, "2.4 s"),
        (-41.9, "41 s"),
        (60, "1 min"),
        (185, "3 min 5 s"),
        (8040, "2 h 14 min"),
        (86_400 * 5 + 3 * 3600, "5 d 3 h"),
        (timedelta.max.total_seconds(), "999999999 d 23 h"),
    ],
)
def test_a_duration_reads_well(seconds, text):
    assert times.text_of_duration(timedelta(seconds=min(seconds, 86_399_999_999_999))) == text


@pytest.mark.parametrize(
    ("distance", "text"),
    [
        (timedelta(0), "now"),
        (timedelta(milliseconds=-900), "now"),
        (timedelta(seconds=-59.9), "59 s ago"),
        (timedelta(seconds=125), "in 2 min"),
        (timedelta(hours=2, minutes=14), "in 2 h 14 min"),
        (timedelta(days=-3, hours=-5), "3 d ago"),
    ],
)
def test_a_distance_is_as_exact_as_a_glance_needs(distance, text):
    assert times.relative(NOW + distance, NOW) == text


def test_an_instant_says_its_zone_and_its_year_where_that_is_another():
    paris = ZoneInfo("Europe/Paris")
    assert times.compact(datetime(2026, 12, 1, 8, 0, tzinfo=UTC), paris, NOW) == "1 Dec 09:00 CET"
    assert times.compact(datetime(2027, 7, 1, 8, 0, 5, tzinfo=UTC), paris, NOW) == "1 Jul 2027 10:00:05 CEST"


@pytest.mark.parametrize("moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Adak"])
def test_the_ends_of_the_calendar_have_words(moment, zone):
    tz = ZoneInfo(zone)
    assert times.compact(moment, tz, NOW)
    assert times.in_zone(moment, tz)
    assert times.full_instant(moment, NOW)
    assert "datetime=" in times.short_instant(moment, NOW)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/7 * * * *", "every hour at minute 0, 7, 14, 21, 28, 35, 42, 49, 56"),
        ("7 * * * *", "every hour at minute 7"),
        ("0 9 * * *", "at 09:00"),
        ("0 9,17 * * *", "at 09:00 and 17:00"),
        ("0,30 8-9 * * *", "at 08:00, 08:30, 09:00 and 09:30"),
        ("*/15 8-18 * * *", "every 15 minutes from hour 8 to 18"),
        ("1,2 8-18 * * *", "at minute 1, 2 of hour 8 to 18"),
        ("0 9 * * mon-fri", "at 09:00, on Monday to Friday"),
        ("0 9 * * sat,sun", "at 09:00, on Saturday, Sunday"),
        ("0 9 * * 0", "at 09:00, on Sunday"),
        ("0 9 1,15 * *", "at 09:00, on day 1, 15"),
        ("0 9 L * *", "at 09:00, on the last day of the month"),
        ("0 9 * * 5L", "at 09:00, on the last Friday"),
        ("0 9 * * 2#1", "at 09:00, on Tuesday number 1 of the month"),
        ("0 9 1 * mon", "at 09:00, on day 1 or on Monday"),
        ("0 9 * jan,jun-aug *", "at 09:00, in January, June to August"),
        ("@hourly", "every hour at minute 0"),
        ("@yearly", "at 00:00, on day 1, in January"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("5 * * * * *", "at second 5 of every minute"),
        ("5 0 9 * * *", "at second 5 of minute 0 of hour 9"),
    ],
)
def test_a_cron_expression_has_words(expression, words):
    spec = json.dumps({"kind": "cron", "expr": expression})
    assert schedules.describe(spec) == words
    assert schedules.expression_of(spec) == expression


def test_an_interval_has_words():
    spec = '{"kind":"interval","ms":5400000}'
    assert schedules.describe(spec) == "every 1 h 30 min"
    assert schedules.expression_of(spec) == ""


@pytest.mark.parametrize("spec", ["", "x", "{}", "[]", '{"kind":"cron","expr":"@reboot"}'])
def test_what_is_no_schedule_is_refused_with_one_exception(spec):
    with pytest.raises(InvalidSchedule):
        schedules.describe(spec)
    with pytest.raises(InvalidSchedule):
        schedules.expression_of(spec)


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "db_passwd", "userPassword", "api_key", "apiKey", "API-KEY", "x-api-key",
        "client_secret",
        "access_token", "Authorization", "private_key", "aws_secret_access_key", "credentials", "pwd",
    ],
)  # fmt: skip
def test_a_name_like_a_secret_is_one(name):
    assert arguments.is_secret(name)


@pytest.mark.parametrize("name", ["key", "user", "author", "order_id", "passenger", "monkey", ""])
def test_a_name_unlike_a_secret_is_none(name):
    assert not arguments.is_secret(name)


@pytest.mark.parametrize(("args", "kwargs"), [(None, None), ({"a": 1}, [1]), ("text", 7), ([], {})])
def test_a_call_of_any_shape_is_shown(args: Any, kwargs: Any):
    for shown in arguments.show_call("nobody.knows", args, kwargs):
        assert isinstance(shown.text, str)


def test_a_value_that_goes_deep_is_shown():
    value: Any = 1
    for _ in range(200):
        value = [value]
    assert arguments.show_value("x", value).text.startswith("[")


def test_ids_made_at_an_instant_are_not_below_its_first_one():
    made = uuid7()
    moment = datetime.fromtimestamp((made.int >> 80) / 1000, tz=UTC)
    assert filters.first_id_at(moment) <= made
    assert filters.first_id_at(moment + timedelta(milliseconds=1)) > made
    assert filters.first_id_at(moment).version == 7
    assert isinstance(filters.first_id_at(datetime.min.replace(tzinfo=UTC)), UUID)
