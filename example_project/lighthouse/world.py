"""The map: coasts, graticule, the night, and sixteen lamps, as marks for a template."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from lighthouse.coastlines import COASTS
from lighthouse.sun import subsolar_point
from lighthouse.svg import points
from lighthouse.towers import LAMP_ALTITUDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lighthouse.models import Tower

Box = tuple[float, float, float, float]  # left, top, right, bottom

WIDTH, HEIGHT = 1000, 470
# The empty rims of the Arctic and Antarctic are cut off.
TOP_LATITUDE, BOTTOM_LATITUDE = 84.0, -85.2
COLUMN = 3  # degrees of longitude between two points of the night's edge
NIGHTS = (LAMP_ALTITUDE, -6.0, -12.0)  # sunset, and the ends of civil and nautical twilight

# What a letter of the map's 12-pixel type takes, and the distance of a name from its lamp.
LETTER_WIDTH, LETTER_HEIGHT, GAP = 6.4, 13.0, 8.0


@dataclass(frozen=True, slots=True)
class Lamp:
    """One tower on the map, with a place for its name that touches no other name."""

    x: float
    y: float
    lit: bool
    name: str
    title: str
    anchor: str
    label_x: float
    label_y: float


@dataclass(frozen=True, slots=True)
class WorldMap:
    """Everything that the map's template draws; coordinates are pixels of its viewBox."""

    width: int
    height: int
    coasts: list[str]
    meridians: list[float]
    parallels: list[float]
    nights: list[str]
    sun: tuple[float, float]
    lamps: list[Lamp]


def project(longitude: float, latitude: float) -> tuple[float, float]:
    """Give the place's pixel: plate carrée, so that the terminator is easy to read."""
    span = TOP_LATITUDE - BOTTOM_LATITUDE
    return (longitude + 180) / 360 * WIDTH, (TOP_LATITUDE - latitude) / span * HEIGHT


def world_map(towers: list[Tower], moment: datetime) -> WorldMap:
    """Give the map of the moment."""
    declination, noon_longitude = subsolar_point(moment)
    return WorldMap(
        width=WIDTH,
        height=HEIGHT,
        coasts=[points(project(*place) for place in coast) for coast in COASTS.values()],
        meridians=[project(longitude, 0)[0] for longitude in range(-150, 180, 30)],
        parallels=[project(0, latitude)[1] for latitude in (60, 30, 0, -30, -60)],
        nights=[shape for limit in NIGHTS for shape in night(declination, noon_longitude, limit)],
        sun=project(noon_longitude, declination),
        lamps=lamps(towers, moment),
    )


def night(declination: float, noon_longitude: float, limit: float) -> Iterator[str]:
    """Give polygons of the places where the sun stands lower than ``limit`` (0 or less)."""
    columns = [
        (longitude, _dark_latitudes(declination, longitude - noon_longitude, limit))
        for longitude in range(-180, 181, COLUMN)
    ]
    for dark, run in groupby(columns, key=lambda column: column[1] is not None):
        if dark:
            strip = [(longitude, band) for longitude, band in run if band is not None]
            upper = [project(longitude, band[1]) for longitude, band in strip]
            lower = [project(longitude, band[0]) for longitude, band in reversed(strip)]
            yield points(upper + lower)


def _dark_latitudes(declination: float, hour_angle: float, limit: float) -> tuple[float, float] | None:
    """Give the one interval of a meridian where the sun is under the limit, if there is any.

    On a meridian the sine of the sun's altitude is a cosine wave in the latitude
    with its crest at ``crest``; dark is everything further than ``reach`` from it.
    """
    delta, hour = math.radians(declination), math.radians(hour_angle)
    across, along = math.sin(delta), math.cos(delta) * math.cos(hour)
    size = math.hypot(across, along)
    sine = math.sin(math.radians(limit))
    if size <= abs(sine):
        return None
    crest = math.degrees(math.atan2(across, along))
    reach = math.degrees(math.acos(sine / size))
    low, high = crest + reach, crest - reach + 360
    for shift in (-360, 0):
        bottom, top = max(low + shift, -90.0), min(high + shift, 90.0)
        if bottom < top:
            return bottom, top
    return None


def lamps(towers: list[Tower], moment: datetime) -> list[Lamp]:
    """Give the lamps; each name stands right, left, above or below, wherever is room first."""
    places = [project(tower.site.longitude, tower.site.latitude) for tower in towers]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    found = []
    for tower, (x, y) in zip(towers, places, strict=True):
        options = _label_places(x, y, len(tower.site.name) * LETTER_WIDTH)
        free = [option for option in options if _is_free(option[3], taken)]
        anchor, label_x, label_y, box = (free or options)[0]
        taken.append(box)
        found.append(_lamp(tower, moment, (x, y), (anchor, label_x, label_y)))
    return found


def _label_places(x: float, y: float, width: float) -> list[tuple[str, float, float, Box]]:
    up, down = LETTER_HEIGHT * 0.6, LETTER_HEIGHT * 0.4
    spots = [("start", x + GAP, y + 4), ("end", x - GAP, y + 4), ("middle", x, y - 10), ("middle", x, y + 18)]
    lefts = {"start": 0.0, "end": width, "middle": width / 2}
    return [
        (anchor, at_x, at_y, (at_x - lefts[anchor], at_y - up - 4, at_x - lefts[anchor] + width, at_y + down - 4))
        for anchor, at_x, at_y in spots
    ]


def _is_free(box: Box, taken: list[Box]) -> bool:
    left, top, right, bottom = box
    if left < 0 or right > WIDTH:
        return False
    return all(right < x1 or left > x2 or bottom < y1 or top > y2 for x1, y1, x2, y2 in taken)


def _lamp(tower: Tower, moment: datetime, place: tuple[float, float], label: tuple[str, float, float]) -> Lamp:
    site, local = tower.site, tower.site.local(moment)
    state = "lamp lit" if tower.lamp_lit else "lamp dark"
    return Lamp(
        x=place[0],
        y=place[1],
        lit=tower.lamp_lit,
        name=site.name,
        title=f"{site.name}, {site.country}: {state}, {local:%H:%M} {local.tzname()}, {site.character}",
        anchor=label[0],
        label_x=label[1],
        label_y=label[2],
    )
