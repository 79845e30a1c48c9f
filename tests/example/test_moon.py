"""The moon against published instants."""

from datetime import UTC, datetime

import pytest

from lighthouse.moon import moon_at


def test_the_worked_example_of_meeus_comes_out():
    # Astronomical Algorithms, chapter 48: 1992 April 12, 0h, illuminated fraction 0.68.
    assert moon_at(datetime(1992, 4, 12, tzinfo=UTC)).lit == pytest.approx(0.68, abs=0.005)


def test_a_solar_eclipse_happens_at_new_moon():
    moon = moon_at(datetime(2024, 4, 8, 18, 21, tzinfo=UTC))
    assert moon.lit < 0.002
    assert moon.name == "new moon"


def test_a_lunar_eclipse_happens_at_full_moon():
    moon = moon_at(datetime(2025, 3, 14, 6, 55, tzinfo=UTC))
    assert moon.lit > 0.998
    assert moon.name == "full moon"


@pytest.mark.parametrize(
    ("moment", "name", "waxing"),
    [
        (datetime(2024, 4, 15, 19, 13, tzinfo=UTC), "first quarter", True),
        (datetime(2024, 5, 1, 11, 27, tzinfo=UTC), "last quarter", False),
    ],
)
def test_the_quarters_are_half_lit(moment, name, waxing):
    moon = moon_at(moment)
    assert moon.lit == pytest.approx(0.5, abs=0.02)
    assert (moon.name, moon.waxing) == (name, waxing)
