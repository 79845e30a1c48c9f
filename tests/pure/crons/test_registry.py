from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from django_helisched.crons.cron import CatchUp, Overlap
from django_helisched.crons.occurrences import compute_next_run
from django_helisched.crons.refusals import UnknownZone
from django_helisched.crons.registry import collect, cron_jobs
from django_helisched.crons.spec import CronSpec, InvalidSchedule, parse_spec
from django_helisched.exceptions import InvalidOption

PATH = "shop.jobs.digest"


def only(crons):
    (entry,) = crons.entries()
    return entry


def test_an_interval_is_stored_in_milliseconds_with_the_documented_defaults():
    crons = cron_jobs()
    crons.interval("poll", timedelta(minutes=1, seconds=30), PATH)
    entry = only(crons)
    assert entry.spec == '{"kind":"interval","ms":90000}'
    assert (entry.source, entry.space, entry.name, entry.tz) == ("code", "", "poll", "UTC")
    assert (entry.catch_up, entry.overlap, entry.enabled) == (CatchUp.FIRE_ONCE, Overlap.ALLOW, True)
    assert (entry.queue, entry.priority, entry.max_failures) == (None, None, None)
    assert (entry.jitter, entry.start, entry.end, entry.fn_path) == (timedelta(0), None, None, PATH)


def test_a_number_is_an_interval_in_seconds():
    crons = cron_jobs()
    crons.interval("poll", 1.5, PATH)
    assert only(crons).spec == '{"kind":"interval","ms":1500}'


def test_a_cron_keeps_its_expression_zone_and_options():
    crons = cron_jobs()
    start = datetime(2026, 1, 1, 2, 0, 0, 123_456, tzinfo=timezone(timedelta(hours=2)))
    crons.cron(
        "digest",
        "0  9 * * mon-fri",
        SimpleNamespace(path=PATH),
        {"kind": "short", "ids": (1, 2)},
        tz="Europe/Paris",
        catch_up="skip",
        overlap="cancel_previous",
        max_failures=5,
        queue="mail",
        priority=-100,
        space="acme",
        jitter=10,
        start=start,
        end=datetime(2027, 1, 1, tzinfo=UTC),
        enabled=False,
    )
    entry = only(crons)
    assert entry.spec == '{"expr":"0 9 * * mon-fri","kind":"cron"}'
    assert (entry.args, entry.kwargs) == ([], {"kind": "short", "ids": [1, 2]})
    assert (entry.fn_path, entry.tz, entry.space, entry.enabled) == (PATH, "Europe/Paris", "acme", False)
    assert (entry.catch_up, entry.overlap) == (CatchUp.SKIP, Overlap.CANCEL_PREVIOUS)
    assert (entry.max_failures, entry.queue, entry.priority, entry.jitter) == (5, "mail", -100, timedelta(seconds=10))
    assert entry.start == datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)


def test_a_list_of_arguments_is_positional():
    crons = cron_jobs()
    crons.interval("poll", 1, PATH, (1, "two", None, {"three": [True, 4.5]}))
    assert (only(crons).args, only(crons).kwargs) == ([1, "two", None, {"three": [True, 4.5]}], {})


def test_the_names_for_utc_times_make_expressions():
    crons = cron_jobs()
    crons.hourly("rates", minute_utc=5, fn=PATH)
    crons.daily("backup", hour_utc=3, minute_utc=30, fn=PATH)
    crons.weekly("report", day_of_week="monday", hour_utc=9, minute_utc=30, fn=PATH, catch_up="fire_all")
    crons.monthly("invoice", day=31, hour_utc=0, minute_utc=0, fn=PATH, args={"a": 1})
    expressions = ("5 * * * *", "30 3 * * *", "30 9 * * 1", "0 0 31 * *")
    assert [parse_spec(entry.spec) for entry in crons.entries()] == [CronSpec(expr) for expr in expressions]
    assert {entry.tz for entry in crons.entries()} == {"UTC"}


@pytest.mark.parametrize(
    ("day", "date"),
    [("sunday", 7), ("monday", 1), ("tuesday", 2), ("wednesday", 3), ("thursday", 4), ("friday", 5), ("saturday", 6)],
)
def test_a_weekday_falls_on_its_day(day, date):
    crons = cron_jobs()
    crons.weekly("report", day_of_week=day, hour_utc=9, minute_utc=0, fn=PATH)
    found = compute_next_run(only(crons).spec, "UTC", datetime(2026, 5, 31, 10, tzinfo=UTC))
    assert found == datetime(2026, 6, date, 9, tzinfo=UTC)


def test_a_month_without_the_day_is_left_out():
    crons = cron_jobs()
    crons.monthly("invoice", day=31, hour_utc=0, minute_utc=0, fn=PATH)
    found = compute_next_run(only(crons).spec, "UTC", datetime(2026, 1, 31, tzinfo=UTC))
    assert found == datetime(2026, 3, 31, tzinfo=UTC)


@pytest.mark.parametrize("method", ["hourly", "daily", "weekly", "monthly"])
def test_a_time_in_utc_refuses_a_zone(method):
    times: dict[str, dict[str, object]] = {
        "hourly": {"minute_utc": 0},
        "daily": {"hour_utc": 0, "minute_utc": 0},
        "weekly": {"day_of_week": "monday", "hour_utc": 0, "minute_utc": 0},
        "monthly": {"day": 1, "hour_utc": 0, "minute_utc": 0},
    }
    with pytest.raises(TypeError, match=rf"{method}\(\) takes its time in UTC and no tz"):
        getattr(cron_jobs(), method)("a", fn=PATH, tz="UTC", **times[method])


def test_entries_come_in_order_and_cannot_change_the_registry():
    crons = cron_jobs()
    for name in "cab":
        crons.interval(name, 1, PATH)
    assert isinstance(crons.entries(), tuple)
    assert [entry.name for entry in crons.entries()] == ["c", "a", "b"]


def test_a_name_declared_twice_is_refused_with_both_places():
    crons = cron_jobs()
    crons.interval("a", 1, PATH)
    with pytest.raises(InvalidOption) as refusal:
        crons.cron("a", "* * * * *", PATH)
    first = only(crons).origin
    assert first.rpartition(":")[0] == __file__
    second = f"{__file__}:{int(first.rpartition(':')[2]) + 2}"
    assert str(refusal.value) == (
        f'The cron "a" is declared twice at {first} and at {second}. Give one of them another name.'
    )


def test_two_spaces_may_use_one_name_and_two_registries_may_not():
    one, other = cron_jobs(), cron_jobs()
    one.interval("a", 1, PATH)
    one.interval("a", 1, PATH, space="acme")
    other.interval("b", 1, PATH)
    assert [entry.key for entry in collect([one, other])] == ["code::a", "code:acme:a", "code::b"]
    other.interval("a", 1, PATH)
    with pytest.raises(InvalidOption, match="declared twice"):
        collect([one, other])


@pytest.mark.parametrize(
    ("expr", "options", "error", "says"),
    [
        ("61 2 * * *", {}, InvalidSchedule, '"61 2 * * *": minute 61 is out of range 0-59.'),
        ("  ", {}, InvalidSchedule, "The cron expression is blank"),
        ("0 0 30 2 *", {}, InvalidSchedule, "February has no day 30"),
        ("* * * * *", {"tz": "Europe/Berln"}, UnknownZone, 'Did you mean "Europe/Berlin"?'),
        ("* * * * *", {"catch_up": "fireOnce"}, InvalidOption, "catch_up must be one of skip, fire_once, fire_all"),
        ("* * * * *", {"overlap": None}, InvalidOption, "overlap must be one of allow, skip, cancel_previous"),
        ("* * * * *", {"max_failures": 0}, InvalidOption, "max_failures must be a whole number from 1"),
        ("* * * * *", {"max_failures": True}, InvalidOption, "max_failures must be a whole number from 1"),
        ("* * * * *", {"priority": 101}, InvalidOption, "priority must be a whole number from -100 to 100"),
        ("* * * * *", {"queue": ""}, InvalidOption, "queue ('') must be printable, not empty"),
        ("* * * * *", {"queue": "q" * 101}, InvalidOption, "queue must be a text of at most 100 characters"),
        ("* * * * *", {"space": " x"}, InvalidOption, "space (' x') must be printable"),
        ("* * * * *", {"jitter": -1}, InvalidOption, "jitter must be a timedelta or a number of seconds, zero or more"),
        ("* * * * *", {"jitter": float("nan")}, InvalidOption, "jitter must be a timedelta"),
        ("* * * * *", {"jitter": "5"}, InvalidOption, "jitter must be a timedelta"),
        ("* * * * *", {"enabled": 1}, InvalidOption, "enabled must be True or False"),
        ("* * * * *", {"start": datetime(2026, 1, 1)}, InvalidOption, "start must be an aware datetime"),  # noqa: DTZ001
        ("* * * * *", {"end": "2026-01-01"}, InvalidOption, "end must be an aware datetime"),
        (
            "* * * * *",
            {"start": datetime(2026, 1, 2, tzinfo=UTC), "end": datetime(2026, 1, 1, tzinfo=UTC)},
            InvalidOption,
            "must be before end",
        ),
    ],
)
def test_a_mistake_is_raised_at_its_declaration_with_name_and_place(expr, options, error, says):
    crons = cron_jobs()
    with pytest.raises(error) as refusal:
        crons.cron("digest", expr, PATH, **options)
    assert str(refusal.value).startswith(f'The cron "digest" at {__file__}:')
    assert says in str(refusal.value)
    assert crons.entries() == ()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({1: 2}, "args have the key 1"),
        ({"a": {("b",): 1}}, "args have the key ('b',)"),
        ({"a": float("nan")}, "args hold nan"),
        ([float("inf")], "args hold inf"),
        ([datetime(2026, 1, 1, tzinfo=UTC)], "args hold datetime.datetime(2026"),
        ([{1, 2}], "args hold {1, 2}"),
        (["\x00"], "args hold a NUL character"),
        ({"\ud800": 1}, "args hold a lone surrogate"),
        ("text", "args must be a dict"),
        (5, "args must be a dict"),
    ],
)
def test_arguments_that_json_would_change_are_refused(args, says):
    with pytest.raises(InvalidOption) as refusal:
        cron_jobs().interval("poll", 1, PATH, args)
    assert says in str(refusal.value)


def test_arguments_without_bottom_are_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidOption, match="nested deeper than 200 levels"):
        cron_jobs().interval("poll", 1, PATH, endless)


@pytest.mark.parametrize("fn", [print, None, "digest", "shop..digest", "shop.jobs.<locals>", "", "x." + "y" * 255])
def test_only_a_registered_function_or_a_dotted_path_can_be_named(fn):
    with pytest.raises(InvalidOption, match=r'The cron "poll" at .* fn must'):
        cron_jobs().interval("poll", 1, fn)


@pytest.mark.parametrize(
    ("every", "says"),
    [
        (0, "An interval must be between 1 millisecond and 100 years"),
        (timedelta(days=40_000), "An interval must be between 1 millisecond and 100 years"),
        (-5, "the interval must be a timedelta or a number of seconds"),
        (None, "the interval must be a timedelta or a number of seconds"),
        (1e300, "the interval must be a timedelta or a number of seconds"),
        (timedelta(microseconds=1500), "the interval must be a whole number of milliseconds"),
    ],
)
def test_an_interval_is_a_positive_duration_in_whole_milliseconds(every, says):
    with pytest.raises(ValueError, match=says):
        cron_jobs().interval("poll", every, PATH)


@pytest.mark.parametrize(
    ("declare", "says"),
    [
        (lambda crons: crons.hourly("a", minute_utc=60, fn=PATH), "minute_utc must be a whole number from 0 to 59"),
        (lambda crons: crons.daily("a", hour_utc=24, minute_utc=0, fn=PATH), "hour_utc must be a whole number"),
        (lambda crons: crons.monthly("a", day=0, hour_utc=0, minute_utc=0, fn=PATH), "day must be a whole number"),
        (
            lambda crons: crons.weekly("a", day_of_week="Monday", hour_utc=0, minute_utc=0, fn=PATH),
            "day_of_week must be one of sunday, monday",
        ),
        (lambda crons: crons.hourly("a", minute_utc="5", fn=PATH), "minute_utc must be a whole number"),
    ],
)
def test_the_fields_of_a_utc_time_are_checked(declare, says):
    with pytest.raises(InvalidOption, match=says):
        declare(cron_jobs())


@pytest.mark.parametrize("name", ["", " a", "a\n", "x" * 151, None, "\x00"])
def test_a_name_can_be_stored_and_read(name):
    with pytest.raises(InvalidOption, match="the name of a cron"):
        cron_jobs().interval(name, 1, PATH)


def test_an_unknown_option_is_refused_with_those_there_are():
    with pytest.raises(TypeError, match="has no option timezone; the options are catch_up, enabled"):
        cron_jobs().interval("poll", 1, PATH, timezone="UTC")  # type: ignore[call-arg]
