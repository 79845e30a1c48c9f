"""Where the sun stands, and when it rises and sets.

The low-precision solar equations that NOAA's calculator uses: good to about a
minute between the polar circles, a few minutes where the sun grazes the horizon.
Angles are degrees, north and east positive; every moment is aware.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

J2000 = datetime(2000, 1, 1, 12, tzinfo=UTC)
DAYS_PER_CENTURY = 36525.0

RISE_ALTITUDE = -0.833  # upper edge on the horizon, seen through the air's refraction
CIVIL_ALTITUDE = -6.0

# Each round shrinks the error about twentyfold; four leave less than a second.
ROUNDS = 4


@dataclass(frozen=True, slots=True)
class SunDay:
    """The sun's calendar around one local noon.

    ``rise`` and ``set`` are None on a day without them; then ``polar`` says why:
    "day" (the sun stays up) or "night" (it stays down). The same for civil
    twilight, ``dawn`` and ``dusk``. Near the date line of a zone an event may
    fall on the calendar day before or after.
    """

    noon: datetime
    rise: datetime | None
    set: datetime | None
    dawn: datetime | None
    dusk: datetime | None
    polar: str


@dataclass(frozen=True, slots=True)
class SunPosition:
    """The sun's place in the sky of the whole Earth at one moment."""

    declination: float
    equation_of_time: float  # minutes that a sundial is ahead of a mean clock


def centuries(moment: datetime) -> float:
    """Give the Julian centuries since J2000."""
    return (moment - J2000) / timedelta(days=DAYS_PER_CENTURY)


def _ecliptic_longitude(t: float, anomaly: float) -> float:
    mean = 280.46646 + t * (36000.76983 + 0.0003032 * t)
    m = math.radians(anomaly)
    centre = (
        math.sin(m) * (1.914602 - t * (0.004817 + 0.000014 * t))
        + math.sin(2 * m) * (0.019993 - 0.000101 * t)
        + math.sin(3 * m) * 0.000289
    )
    node = math.radians(125.04 - 1934.136 * t)
    return mean + centre - 0.00569 - 0.00478 * math.sin(node)


def _obliquity(t: float) -> float:
    mean = 23.0 + (26.0 + (21.448 - t * (46.815 + t * (0.00059 - t * 0.001813))) / 60) / 60
    return mean + 0.00256 * math.cos(math.radians(125.04 - 1934.136 * t))


def sun_position(moment: datetime) -> SunPosition:
    """Give declination and equation of time at the moment."""
    t = centuries(moment)
    anomaly = 357.52911 + t * (35999.05029 - 0.0001537 * t)
    tilt = math.radians(_obliquity(t))
    longitude = math.radians(_ecliptic_longitude(t, anomaly))
    declination = math.asin(math.sin(tilt) * math.sin(longitude))
    return SunPosition(math.degrees(declination), _equation_of_time(t, anomaly, tilt))


def _equation_of_time(t: float, anomaly: float, tilt: float) -> float:
    eccentricity = 0.016708634 - t * (0.000042037 + 0.0000001267 * t)
    mean = math.radians(280.46646 + t * (36000.76983 + 0.0003032 * t))
    m = math.radians(anomaly)
    y = math.tan(tilt / 2) ** 2
    return 4 * math.degrees(
        y * math.sin(2 * mean)
        - 2 * eccentricity * math.sin(m)
        + 4 * eccentricity * y * math.sin(m) * math.cos(2 * mean)
        - 0.5 * y * y * math.sin(4 * mean)
        - 1.25 * eccentricity**2 * math.sin(2 * m)
    )


def subsolar_point(moment: datetime) -> tuple[float, float]:
    """Give latitude and longitude of the place with the sun overhead."""
    sun = sun_position(moment)
    utc = moment.astimezone(UTC)
    minutes = utc.hour * 60 + utc.minute + (utc.second + utc.microsecond / 1e6) / 60
    longitude = -(minutes + sun.equation_of_time - 720) / 4
    return sun.declination, (longitude + 180) % 360 - 180


def altitude(moment: datetime, latitude: float, longitude: float) -> float:
    """Give the height of the sun's centre over the horizon, without refraction."""
    sub_latitude, sub_longitude = subsolar_point(moment)
    phi, delta = math.radians(latitude), math.radians(sub_latitude)
    hour_angle = math.radians(longitude - sub_longitude)
    sine = math.sin(phi) * math.sin(delta) + math.cos(phi) * math.cos(delta) * math.cos(hour_angle)
    return math.degrees(math.asin(max(-1.0, min(1.0, sine))))


def sun_day(day: date, latitude: float, longitude: float, zone: tzinfo) -> SunDay:
    """Give noon, sunrise, sunset and civil twilight of one date on a zone's clock.

    All moments are in UTC. The solar noon is the one closest to 12:00 on that
    clock; a rise belongs to the noon that follows it, a set to the one before.
    """
    clock_noon = datetime.combine(day, time(12), tzinfo=zone).astimezone(UTC)
    noon = _solar_noon(clock_noon, longitude)
    rise = _crossing(noon, latitude, RISE_ALTITUDE, -1)
    sunset = _crossing(noon, latitude, RISE_ALTITUDE, +1)
    polar = ""
    if rise is None or sunset is None:
        polar = "day" if altitude(noon, latitude, longitude) > RISE_ALTITUDE else "night"
    return SunDay(
        noon=noon,
        rise=rise,
        set=sunset,
        dawn=_crossing(noon, latitude, CIVIL_ALTITUDE, -1),
        dusk=_crossing(noon, latitude, CIVIL_ALTITUDE, +1),
        polar=polar,
    )


def _solar_noon(near: datetime, longitude: float) -> datetime:
    moment = near
    for _ in range(ROUNDS):
        _, sub_longitude = subsolar_point(moment)
        ahead = (sub_longitude - longitude + 180) % 360 - 180
        moment += timedelta(minutes=4 * ahead)
    return moment


def _crossing(noon: datetime, latitude: float, height: float, side: int) -> datetime | None:
    """Find when the sun passes a height, before (-1) or after (+1) the noon."""
    phi, sine = math.radians(latitude), math.sin(math.radians(height))
    base = sun_position(noon).equation_of_time
    moment = noon
    for _ in range(ROUNDS):
        sun = sun_position(moment)
        delta = math.radians(sun.declination)
        cosine = (sine - math.sin(phi) * math.sin(delta)) / (math.cos(phi) * math.cos(delta))
        if abs(cosine) > 1:
            return None
        minutes = side * 4 * math.degrees(math.acos(cosine)) + base - sun.equation_of_time
        moment = noon + timedelta(minutes=minutes)
    return moment
