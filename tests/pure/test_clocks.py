from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from django_helisched.stores import clock as clocks
from django_helisched.stores.clock import RESYNC_AFTER, CarriedClock, cut, later
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


class SlowDatabase:
    """Tells the true time in the middle of each round trip, but for what the first waits before it is asked."""

    def __init__(self, *waits: float) -> None:
        self.at = 0.0
        self.waits = list(waits)
        self.asked = 0

    def read(self) -> datetime:
        self.asked += 1
        self.at += self.waits.pop(0) if self.waits else 0.0
        told = NOON + timedelta(seconds=self.at)
        self.at += 0.0004
        return told


@pytest.fixture
def carried_by(monkeypatch: pytest.MonkeyPatch):
    def make(database: SlowDatabase) -> CarriedClock:
        monkeypatch.setattr(clocks, "elapsed", lambda: database.at)
        return CarriedClock(database.read)

    return make


def test_a_reading_that_waited_for_its_connection_is_read_again(carried_by):
    database = SlowDatabase(0.03)
    clock = carried_by(database)
    assert clock.now() == cut(NOON + timedelta(seconds=database.at))
    assert database.asked == 2


def test_of_slow_readings_the_quickest_is_kept(carried_by):
    database = SlowDatabase(0.3, 0.002, 0.1)
    clock = carried_by(database)
    off = abs(clock.now() - NOON - timedelta(seconds=database.at))
    assert off <= timedelta(milliseconds=2)
    assert database.asked == 3


def test_the_carried_time_moves_by_milliseconds_from_wherever_it_was_read(carried_by):
    database = SlowDatabase()
    database.at = 0.0123457
    clock = carried_by(database)
    for step in (0.0, 0.0001, 0.0004, 0.0005, 0.001, 0.25, 1.0):
        database.at += step
        assert clock.now() == clock.now() == cut(NOON + timedelta(seconds=database.at - 0.0002))


def test_a_clock_that_was_read_anew_tells_nothing_of_before(carried_by):
    database = SlowDatabase()
    clock = carried_by(database)
    assert clock.now() == NOON
    clock.resync()
    database.at, database.waits = -0.0002, [1.0]
    assert clock.now() == NOON + timedelta(seconds=1)


def test_a_quick_reading_is_carried_for_half_a_minute(carried_by):
    database = SlowDatabase()
    clock = carried_by(database)
    clock.now()
    database.at += RESYNC_AFTER - 1
    assert clock.now() == cut(NOON + timedelta(seconds=database.at))
    assert database.asked == 1
    database.at += 2
    clock.now()
    assert database.asked == 2
