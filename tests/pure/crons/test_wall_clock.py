from __future__ import annotations

import random
import subprocess
import sys
from itertools import pairwise

import pytest

from django_helisched.crons.refusals import InvalidSchedule, UnknownZone
from django_helisched.crons.wall_clock import (
    FIRST_INSTANT,
    LARGEST_CHANGE,
    LAST_INSTANT,
    LOOK_EVERY,
    stretch_at,
    tzdata_version,
    zone,
    zone_names,
)
from tests.pure.crons import oracle


def test_no_zone_changes_twice_between_two_looks_or_by_more_than_a_day():
    for key in oracle.zone_names():
        changes = oracle.changes(key)
        for (earlier, *_), (later, *_) in pairwise(changes):
            assert later - earlier > LOOK_EVERY, key
        for _, before, after in changes:
            assert abs(after - before) <= LARGEST_CHANGE, key


def test_every_change_in_the_file_of_a_zone_begins_a_stretch():
    for key in oracle.zone_names():
        # Long tables repeat one rule: their two ends show all there is.
        changes = oracle.changes(key)
        for at, before, after in [*changes[:25], *changes[-15:]]:
            stretch = stretch_at(key, at)
            assert (stretch.start, stretch.before, stretch.offset) == (at, before, after), key
            earlier = stretch_at(key, at - 1)
            assert (earlier.end, earlier.offset) == (at, before), key


def test_the_offset_is_that_of_zoneinfo_in_any_year():
    rng = random.Random(4)
    for key in oracle.zone_names():
        for _ in range(5):
            at = rng.randrange(oracle.seconds("1700-01-01T00:00Z"), oracle.seconds("2600-01-01T00:00Z"))
            stretch = stretch_at(key, at)
            assert stretch.start <= at < stretch.end
            assert stretch.offset == oracle.offset(key, at), (key, at)
            assert oracle.offset(key, stretch.start) == oracle.offset(key, stretch.end - 1) == stretch.offset


def test_rules_without_an_end_go_on_in_far_years():
    at = oracle.seconds("9500-07-01T00:00Z")
    assert stretch_at("Europe/Berlin", at).offset == 7200
    assert oracle.moment(stretch_at("Europe/Berlin", at).end).isoformat() == "9500-10-28T01:00:00+00:00"


@pytest.mark.parametrize("key", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/New_York"])
def test_the_first_and_the_last_instant_lie_in_a_stretch(key):
    assert stretch_at(key, FIRST_INSTANT).start == FIRST_INSTANT
    assert stretch_at(key, LAST_INSTANT).end == LAST_INSTANT + 1


def test_a_change_that_reaches_over_new_year_is_known_on_both_sides():
    # Kiritimati left out 31 December 1994.
    jump = oracle.seconds("1994-12-31T10:00Z")
    before, after = stretch_at("Pacific/Kiritimati", jump), stretch_at("Pacific/Kiritimati", jump + 20 * 3600)
    assert before.end < after.end
    assert before.start == after.start == jump
    assert after.gap_end == jump + 24 * 3600


def test_every_zone_of_the_package_can_be_named():
    assert zone_names() == oracle.zone_names()
    for key in zone_names():
        assert zone(key).key == key


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("EUROPE/PARIS", "Europe/Paris"),
        ("America/NewYork", "America/New_York"),
        ("utc ", "UTC"),
    ],
)
def test_a_misspelt_zone_is_refused_with_the_nearest_name(key, nearest):
    with pytest.raises(UnknownZone) as refusal:
        zone(key)
    assert str(refusal.value) == f'Unknown time zone "{key}". Did you mean "{nearest}"?'


@pytest.mark.parametrize(
    "key",
    [
        "", "Mars/Base", "../zones", "Europe/../UTC", "/etc/localtime", "Europe", "Europe/", "/UTC", "./UTC", "UTC\x00",
        "Europe\\Berlin", "zone.tab", "__init__.py", "+02:00", "x" * 100_000,
    ],
)  # fmt: skip
def test_nothing_but_the_exact_name_of_a_zone_opens_a_file(key):
    with pytest.raises(UnknownZone, match="Unknown time zone") as refusal:
        zone(key)
    assert isinstance(refusal.value, InvalidSchedule)
    assert len(str(refusal.value)) < 200


def test_the_version_is_the_release_of_the_time_zone_data():
    assert tzdata_version()[:4].isdigit()
    assert tzdata_version()[4:].isalpha()


def test_zones_are_read_from_the_package_and_not_from_the_system():
    code = (
        "import sys, zoneinfo\n"
        "zoneinfo.reset_tzpath(to=['/nonexistent'])\n"
        "from django_helisched.crons.wall_clock import zone, stretch_at\n"
        "assert stretch_at('Asia/Tokyo', 0).offset == 32400\n"
        "assert zoneinfo.TZPATH == ('/nonexistent',)\n"
        "assert zone('Asia/Tokyo') is not zoneinfo.ZoneInfo('Asia/Tokyo')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_module_of_the_room_imports_django():
    code = (
        "import importlib, pkgutil, sys\n"
        "import django_helisched.crons as room\n"
        "for module in pkgutil.iter_modules(room.__path__):\n"
        "    importlib.import_module(f'{room.__name__}.{module.name}')\n"
        "assert 'django' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
