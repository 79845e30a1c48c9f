"""The sun against values published by almanacs (rounded there to the minute)."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lighthouse.sun import altitude, subsolar_point, sun_day
from lighthouse.towers import SITES, TOWERS

LONDON = (51.5074, -0.1278, "Europe/London")
NEW_YORK = (40.7128, -74.0060, "America/New_York")
SYDNEY = (-33.8688, 151.2093, "Australia/Sydney")
REYKJAVIK = (64.1466, -21.9426, "Atlantic/Reykjavik")

PUBLISHED = [
    (LONDON, date(2024, 6, 20), "04:43", "21:21"),
    (LONDON, date(2024, 12, 21), "08:04", "15:53"),
    (NEW_YORK, date(2024, 6, 20), "05:25", "20:31"),
    (NEW_YORK, date(2024, 12, 21), "07:17", "16:32"),
    (SYDNEY, date(2024, 6, 21), "07:00", "16:54"),
    (SYDNEY, date(2024, 12, 21), "05:41", "20:05"),
]


def minutes(moment, zone):
    local = moment.astimezone(ZoneInfo(zone))
    return local.hour * 60 + local.minute + local.second / 60


def clock(text):
    hours, minute = text.split(":")
    return int(hours) * 60 + int(minute)


@pytest.mark.parametrize(("place", "day", "rise", "sunset"), PUBLISHED)
def test_rise_and_set_agree_with_the_almanac(place, day, rise, sunset):
    latitude, longitude, zone = place
    sun = sun_day(day, latitude, longitude, ZoneInfo(zone))
    assert minutes(sun.rise, zone) == pytest.approx(clock(rise), abs=2)
    assert minutes(sun.set, zone) == pytest.approx(clock(sunset), abs=2)


def test_a_sunset_after_midnight_belongs_to_the_noon_before_it():
    latitude, longitude, zone = REYKJAVIK
    sun = sun_day(date(2024, 6, 21), latitude, longitude, ZoneInfo(zone))
    assert minutes(sun.rise, zone) == pytest.approx(clock("02:55"), abs=3)
    assert sun.set is not None
    assert sun.set.date() == date(2024, 6, 22)
    assert minutes(sun.set, zone) == pytest.approx(clock("00:04"), abs=3)
    assert (sun.dawn, sun.dusk) == (None, None)


@pytest.mark.parametrize(("day", "polar"), [(date(2026, 12, 21), "night"), (date(2026, 6, 21), "day")])
def test_a_polar_day_and_a_polar_night_have_neither_rise_nor_set(day, polar):
    sun = TOWERS["slettnes"].sun_day(day)
    assert (sun.rise, sun.set, sun.polar) == (None, None, polar)


def test_a_polar_night_still_has_twilight():
    sun = TOWERS["slettnes"].sun_day(date(2026, 12, 21))
    assert sun.dawn is not None
    assert sun.dusk is not None
    assert sun.dawn < sun.noon < sun.dusk


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.slug)
def test_at_the_equinox_every_tower_has_about_twelve_hours_of_sun(site):
    sun = site.sun_day(date(2026, 3, 20))
    # Refraction and the sun's radius lengthen the day, the more so the flatter the sun climbs.
    assert timedelta(hours=12) < sun.set - sun.rise < timedelta(hours=12, minutes=25)


def test_at_the_equinox_the_sun_stands_over_the_equator():
    latitude, _ = subsolar_point(datetime(2026, 3, 20, 14, 46, tzinfo=UTC))
    assert latitude == pytest.approx(0, abs=0.01)


def test_at_the_solstice_the_sun_stands_over_the_tropic():
    latitude, _ = subsolar_point(datetime(2026, 6, 21, 8, 25, tzinfo=UTC))
    assert latitude == pytest.approx(23.44, abs=0.01)


def test_the_sun_culminates_at_the_computed_noon():
    site = TOWERS["fastnet"]
    noon = site.sun_day(date(2026, 5, 1)).noon
    higher = [site.sun_altitude(noon + timedelta(minutes=step)) for step in (-10, 0, 10)]
    assert max(higher) == higher[1]
    # 90 degrees less the latitude plus the declination of that day.
    assert higher[1] == pytest.approx(90 - site.latitude + 15.1, abs=0.3)


@pytest.mark.parametrize("day", [date(2026, 3, 8), date(2026, 11, 1)])
def test_a_change_of_the_clock_moves_the_local_time_and_not_the_sun(day):
    site = TOWERS["montauk"]
    before, after = site.sun_day(day - timedelta(days=1)).rise, site.sun_day(day).rise
    assert before is not None
    assert after is not None
    assert abs((after - before) - timedelta(days=1)) < timedelta(minutes=2)
    assert abs(minutes(after, site.zone) - minutes(before, site.zone)) > 55


def test_half_an_hour_of_summer_time_is_half_an_hour():
    site = TOWERS["tacking-point"]
    # Lord Howe's clock leaves summer time on the first Sunday of April.
    before, after = site.sun_day(date(2026, 4, 4)), site.sun_day(date(2026, 4, 5))
    assert minutes(before.rise, site.zone) - minutes(after.rise, site.zone) == pytest.approx(30, abs=2)


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.slug)
def test_the_sun_touches_the_horizon_at_rise_and_set(site):
    sun = site.sun_day(date(2026, 9, 1))
    for moment in (sun.rise, sun.set):
        assert altitude(moment, site.latitude, site.longitude) == pytest.approx(-0.833, abs=0.02)
