from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from django_helisched.crons.operations import archive, edit, pause, resume
from django_helisched.crons.spec import InvalidSchedule
from django_helisched.crons.wall_clock import tzdata_version
from tests.pure.crons.factories import DAILY, NOON, cron

HOUR = timedelta(hours=1)
NOW = NOON + timedelta(minutes=30)
BROKEN = '{"kind":"cron","expr":"@reboot"}'


def current(**fields):
    """Make a row of this process's own time zone data, so that only the verb changes it."""
    return cron(tzdata_version=tzdata_version(), **fields)


def there(update):
    """Give an update that must be there."""
    assert update is not None
    return update


def fields_of(update):
    return dict(there(update).fields)


def test_a_pause_leaves_the_due_time_of_a_punctual_cron():
    assert fields_of(pause(current(), NOW, by="ada", reason="SMTP down")) == {
        "paused_at": NOW,
        "paused_by": "ada",
        "pause_reason": "SMTP down",
    }


def test_a_pause_counts_what_was_overdue_as_missed():
    update = there(pause(current(next_run_at=NOON - HOUR, missed=5), NOW))
    fields = fields_of(update)
    assert (fields["missed"], fields["next_run_at"]) == (7, NOON + HOUR)
    assert (update.dropped.due_at, update.dropped.last_due_at, update.dropped.count) == (NOON - HOUR, NOON, 2)
    assert update.dropped.reason == "dropped when the cron was paused"


def test_resuming_after_a_long_pause_starts_from_now_without_a_storm():
    row = current(next_run_at=NOON + HOUR)
    paused = replace(row, **fields_of(pause(row, NOW)))
    update = there(resume(paused, NOW + 100 * HOUR))
    assert fields_of(update) == {"paused_at": None, "next_run_at": NOON + 101 * HOUR}
    assert update.dropped is None


def test_a_broken_row_can_be_paused_and_resumed_and_shows_its_error():
    row = current(spec=BROKEN, next_run_at=NOON)
    fields = fields_of(pause(row, NOW))
    assert (fields["next_run_at"], fields["missed"]) == (None, 1)
    assert "@reboot" in fields["last_error"]
    assert fields_of(resume(replace(row, **fields), NOW))["paused_at"] is None


def test_a_broken_row_that_is_not_due_has_nothing_to_miss():
    fields = fields_of(pause(current(spec=BROKEN), NOW))
    assert "missed" not in fields
    assert fields["next_run_at"] is None


def test_a_broken_row_stays_broken_with_another_zone_and_is_mended_by_a_good_schedule():
    row = current(spec=BROKEN, next_run_at=None, last_error="broken")
    moved = fields_of(edit(row, NOW, {"tz": "Asia/Tokyo"}))
    assert set(moved) == {"tz", "last_error"}
    assert fields_of(edit(replace(row, **moved), NOW, {"spec": DAILY})) == {
        "spec": DAILY,
        "anchor": NOW,
        "next_run_at": NOON + 12 * HOUR,
        "last_error": "",
    }


def test_a_finished_cron_that_is_paused_missed_nothing_after_its_end():
    assert "missed" not in fields_of(pause(current(next_run_at=NOON, end=NOON - HOUR), NOW))


def test_an_edit_of_the_schedule_never_fires_a_past_instant():
    fields = fields_of(edit(current(spec=DAILY), NOON - 3 * HOUR, {"tz": "Asia/Tokyo"}))
    assert fields["next_run_at"] == NOON + 12 * HOUR
    assert fields_of(edit(current(next_run_at=NOON - HOUR), NOW, {"spec": DAILY}))["next_run_at"] == NOON + 21 * HOUR


def test_an_edit_of_the_arguments_keeps_the_due_time():
    assert fields_of(edit(current(next_run_at=NOON), NOW, {"kwargs": {"a": 1}})) == {"kwargs": {"a": 1}}


def test_an_edit_that_changes_nothing_writes_nothing():
    assert edit(current(), NOW, {"tz": "UTC", "spec": {"kind": "cron", "expr": " 0 * * * * "}}) is None


def test_an_archived_cron_fires_no_more_and_is_archived_once():
    update = there(archive(current(next_run_at=NOON), NOW))
    assert fields_of(update) == {"archived_at": NOW, "next_run_at": None, "missed": 1}
    assert update.dropped.count == 1
    assert archive(current(archived_at=NOW, next_run_at=None), NOW) is None


def test_an_edit_is_checked():
    with pytest.raises(InvalidSchedule, match="Mars"):
        edit(current(), NOW, {"tz": "Mars/Base"})
    with pytest.raises(InvalidSchedule, match="@reboot"):
        edit(current(), NOW, {"spec": BROKEN})
    with pytest.raises(TypeError, match="A cron's fired, version cannot be edited"):
        edit(current(), NOW, {"version": 3, "fired": 0})
