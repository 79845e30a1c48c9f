"""What the example draws: well-formed, escaped, and true to its numbers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import pytest

from lighthouse import julia, lateness, world
from lighthouse.coastlines import COASTS
from lighthouse.postcards import draw_postcard
from lighthouse.sun import altitude, subsolar_point
from lighthouse.towers import SITES, TOWERS

NOON, MIDNIGHT = datetime(2026, 6, 1, 12, tzinfo=UTC), datetime(2026, 6, 1, 0, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def tower(site) -> Any:
    return SimpleNamespace(site=site, slug=site.slug, lamp_lit=False)


def parse(picture):
    return ElementTree.fromstring(picture)  # noqa: S314 # drawn here, a line ago


def switch(slug, seconds, movement="sweep") -> Any:
    return SimpleNamespace(
        tower_id=slug,
        movement=movement,
        lateness=timedelta(seconds=seconds),
        get_movement_display=lambda: movement,
    )


def numbers(polygon):
    return [tuple(map(float, pair.split(","))) for pair in polygon.split()]


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.slug)
@pytest.mark.parametrize("moment", [NOON, MIDNIGHT, NOON + timedelta(hours=6)])
def test_a_postcard_is_well_formed_and_carries_no_style(site, moment):
    picture = draw_postcard(site, moment)
    root = parse(picture)
    assert root.tag == f"{SVG}svg"
    assert site.name in root.find(f"{SVG}title").text
    assert not [element for element in root.iter() if "style" in element.attrib or element.tag == f"{SVG}style"]


def test_the_same_moment_gives_the_same_postcard():
    assert draw_postcard(TOWERS["fastnet"], NOON) == draw_postcard(TOWERS["fastnet"], NOON)


def test_a_name_with_markup_is_escaped_on_the_postcard():
    site = replace(TOWERS["fastnet"], name='<script>"&')
    root = parse(draw_postcard(site, NOON))
    assert root.find(f"{SVG}script") is None
    assert '<script>"&' in root.find(f"{SVG}title").text


def test_only_a_dark_sky_shows_the_beam():
    glass = 'fill="#ffe27a"'
    assert glass in draw_postcard(TOWERS["fastnet"], MIDNIGHT)
    assert glass not in draw_postcard(TOWERS["fastnet"], NOON)


def test_a_seascape_covers_its_frame():
    rows = [julia.julia_row(row, 20, 10, julia.WATERS["Skagerrak"]) for row in range(10)]
    assert [len(row) for row in rows] == [20] * 10
    assert {colour for row in rows for colour in row} <= set(range(len(julia.PALETTE)))
    root = parse(julia.draw_rows(rows, "Skagerrak"))
    painted = sum(int(rect.get("width")) for rect in root.findall(f"{SVG}rect")[1:])
    bare = sum(colour == 0 for row in rows for colour in row)
    assert painted == (20 * 10 - bare) * julia.CELL


@pytest.mark.parametrize("moment", [NOON, MIDNIGHT, datetime(2026, 12, 21, 5, 30, tzinfo=UTC)])
def test_the_edge_of_the_night_is_where_the_sun_is_on_the_horizon(moment):
    declination, noon_longitude = subsolar_point(moment)
    for shape in world.night(declination, noon_longitude, -6.0):
        for x, y in numbers(shape):
            longitude = x / world.WIDTH * 360 - 180
            span = world.TOP_LATITUDE - world.BOTTOM_LATITUDE
            latitude = world.TOP_LATITUDE - y / world.HEIGHT * span
            if abs(latitude) < 89:
                assert altitude(moment, latitude, longitude) == pytest.approx(-6, abs=0.1)


@pytest.mark.parametrize("hours", range(0, 24, 3))
def test_dark_and_light_agree_with_the_suns_altitude(hours):
    moment = datetime(2026, 3, 20, hours, 46, tzinfo=UTC)
    declination, noon_longitude = subsolar_point(moment)
    for longitude in range(-180, 180, 15):
        band = world._dark_latitudes(declination, longitude - noon_longitude, -0.833)
        for latitude in range(-85, 86, 5):
            dark = band is not None and band[0] < latitude < band[1]
            height = altitude(moment, latitude, longitude)
            assert dark == (height < -0.833) or height == pytest.approx(-0.833, abs=0.01)


def test_no_name_on_the_map_touches_another_or_leaves_the_sheet():
    towers = [tower(site) for site in SITES]
    drawn = world.world_map(towers, NOON).lamps
    boxes = []
    for lamp in drawn:
        width = len(lamp.name) * world.LETTER_WIDTH
        left = lamp.label_x - {"start": 0, "middle": width / 2, "end": width}[lamp.anchor]
        assert left >= 0
        assert left + width <= world.WIDTH
        boxes.append((left, left + width, lamp.label_y))
    for place, (left, right, y) in enumerate(boxes):
        for other_left, other_right, other_y in boxes[place + 1 :]:
            assert right < other_left or other_right < left or abs(y - other_y) > 9


def test_every_coast_lies_on_the_globe():
    for coast in COASTS.values():
        assert len(coast) >= 3
        assert all(-180 <= longitude <= 180 and -90 <= latitude <= 90 for longitude, latitude in coast)


def test_the_chart_takes_the_newest_ten_movements_of_each_tower():
    towers = [tower(TOWERS["fastnet"]), tower(TOWERS["morro"])]
    switches = [switch("fastnet", number + 1) for number in range(14)]
    chart = lateness.lateness_chart(towers, switches)
    fastnet, morro = chart.rows
    assert (fastnet.count, fastnet.median, fastnet.worst) == (10, 5.5, 10)
    assert (morro.count, morro.median, morro.median_x) == (0, None, None)


def test_the_chart_keeps_what_is_off_the_scale_on_its_rim():
    assert lateness.position(0) == lateness.position(-3) == lateness.LEFT
    assert lateness.position(1e6) == lateness.WIDTH - lateness.RIGHT
    assert lateness.position(0.01) < lateness.position(0.1) < lateness.position(1)


def test_a_chart_stays_under_180_marks():
    towers = [tower(site) for site in SITES]
    switches = [switch(site.slug, 0.1) for site in SITES for _ in range(20)]
    chart = lateness.lateness_chart(towers, switches)
    assert sum(len(row.dots) + 1 for row in chart.rows) <= 180


def test_there_are_sixteen_towers_with_sixteen_clocks():
    assert len(TOWERS) == 16
    assert len({ZoneInfo(site.zone).key for site in SITES}) == 16
