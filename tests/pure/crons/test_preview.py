from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_helisched.crons.preview import preview
from django_helisched.crons.spec import CronSpec, InvalidSchedule
from tests.pure.crons.questions import following


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def notes(expr: str, tz: str, now: str, count: int = 3) -> list[tuple[str, str]]:
    rows = preview({"kind": "cron", "expr": expr}, tz, utc(now), count)
    return [(f"{row.local:%d %H:%M %z}", row.note) for row in rows]


def test_a_time_that_does_not_exist_is_told_and_the_new_distance_to_utc_after_it():
    assert notes("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00Z", 2) == [
        ("28 03:30 +0200", "02:30 does not exist on 28 March: fires at 03:30."),
        ("29 02:30 +0200", "From here on 1 h earlier in UTC."),
    ]


def test_a_time_that_happens_twice_fires_the_first_time():
    assert notes("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00Z", 2) == [
        ("31 02:30 +0200", "02:30 happens twice on 31 October: fires the first time only."),
        ("01 02:30 +0100", "From here on 1 h later in UTC."),
    ]


def test_with_all_hours_selected_both_passes_are_named():
    assert notes("30 * * * *", "Europe/Berlin", "2027-10-31T00:00Z") == [
        ("31 02:30 +0200", "02:30 happens twice on 31 October: this is the first time."),
        ("31 02:30 +0100", "02:30 happens twice on 31 October: this is the second time."),
        ("31 03:30 +0100", ""),
    ]
    assert [note for _, note in notes("30 * * * *", "Europe/Berlin", "2027-03-27T22:00Z", 6)] == [""] * 6


@pytest.mark.parametrize(
    ("expr", "tz", "now", "note"),
    [
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00Z",
            "02:15 does not exist on 4 October: fires at 02:45.",
        ),
        ("0 0 * * *", "Asia/Beirut", "2027-03-27T12:00Z", "00:00 does not exist on 28 March: fires at 01:00."),
        (
            "30 9 * * *",
            "Pacific/Apia",
            "2011-12-29T22:00Z",
            "09:30 does not exist on 30 December: fires at 09:30 on 31 December.",
        ),
        ("5 0 2 * * *", "Europe/Paris", "2027-03-27T12:00Z", "02:00:05 does not exist on 28 March: fires at 03:00:05."),
    ],
)
def test_odd_gaps_are_told_as_they_are(expr, tz, now, note):
    assert notes(expr, tz, now, 1)[0][1] == note


def test_a_change_of_half_an_hour_is_told_in_minutes():
    told = [note for _, note in notes("0 12 * * *", "Australia/Lord_Howe", "2026-10-02T12:00Z")]
    assert told == ["", "From here on 30 min earlier in UTC.", ""]


def test_the_rows_are_the_schedulers_own_answers():
    spec, now = CronSpec("*/7 1-3 * * 1"), utc("2027-03-20T00:00Z")
    rows = preview(spec, "America/New_York", now, 60)
    for row in rows:
        now = following(spec, "America/New_York", now)
        assert row.due_at == row.local == now
        assert row.due_at.tzinfo is UTC


def test_an_interval_keeps_its_anchor_and_has_no_notes():
    anchor = utc("2027-03-28T00:00Z")
    rows = preview({"kind": "interval", "ms": 3_600_000}, "Europe/Berlin", anchor, 3, anchor=anchor)
    assert [row.due_at - anchor for row in rows] == [timedelta(hours=n) for n in (1, 2, 3)]
    assert {row.note for row in rows} == {""}


def test_a_preview_keeps_to_start_and_end():
    start, end = utc("2026-06-02T09:00Z"), utc("2026-06-03T09:00Z")
    rows = preview(CronSpec("0 9 * * *"), "UTC", utc("2026-05-01T00:00Z"), start=start, end=end)
    assert [row.due_at for row in rows] == [start, end]


def test_a_preview_ends_with_the_calendar():
    assert len(preview(CronSpec("0 0 1 1 *"), "Europe/Berlin", utc("9996-06-01T00:00Z"))) == 3


def test_a_bad_schedule_is_refused():
    with pytest.raises(InvalidSchedule):
        preview({"kind": "cron", "expr": "@reboot"}, "UTC", utc("2026-01-01T00:00Z"))
