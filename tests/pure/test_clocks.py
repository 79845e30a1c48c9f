from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from django_helisched.stores.clock import cut, later
from django_helisched.testing.clock import ManualClock

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_an_instant_is_cut_to_milliseconds_in_utc():
    paris = timezone(timedelta(hours=1))
    assert cut(datetime(2026, 1, 5, 13, 0, 0, 1999, tzinfo=paris)) == NOON.replace(microsecond=1000)
    assert cut(datetime(2026, 1, 5, 13, tzinfo=paris)).tzinfo is UTC


def test_later_is_cut_to_milliseconds():
    assert later(NOON, timedelta(microseconds=1999)) == NOON + timedelta(milliseconds=1)


def test_later_than_the_calendar_is_its_last_millisecond():
    last = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert later(NOON, timedelta.max) == last
    assert later(last, timedelta(milliseconds=1)) == last


def test_a_manual_clock_stands_still_until_it_is_advanced():
    clock = ManualClock(NOON.replace(microsecond=999))
    assert clock.now() == clock.now() == NOON
    assert clock.advance(1.5) == clock.now() == NOON + timedelta(seconds=1.5)
    clock.resync()
    assert clock.advance(timedelta(minutes=1)) == NOON + timedelta(seconds=61.5)
