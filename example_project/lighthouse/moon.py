"""How much of the moon is lit: Meeus's short formula, good to about a percent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from lighthouse.sun import centuries

NAMES = (
    "new moon", "waxing crescent", "first quarter", "waxing gibbous",
    "full moon", "waning gibbous", "last quarter", "waning crescent",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moon:
    """The moon's face: ``age`` from 0 (new) over 0.5 (full) to 1, ``lit`` from 0 to 1."""

    age: float
    lit: float

    @property
    def name(self) -> str:
        """Give the phase in words."""
        return NAMES[round(self.age * 8) % 8]

    @property
    def waxing(self) -> bool:
        """Say whether the lit part grows."""
        return self.age < 0.5


def moon_at(moment: datetime) -> Moon:
    """Give the moon's age and lit part at the moment."""
    t = centuries(moment)
    elongation = math.radians((297.8501921 + 445267.1114034 * t) % 360)
    sun_anomaly = math.radians((357.5291092 + 35999.0502909 * t) % 360)
    moon_anomaly = math.radians((134.9633964 + 477198.8675055 * t) % 360)
    phase_angle = (
        180
        - math.degrees(elongation)
        - 6.289 * math.sin(moon_anomaly)
        + 2.100 * math.sin(sun_anomaly)
        - 1.274 * math.sin(2 * elongation - moon_anomaly)
        - 0.658 * math.sin(2 * elongation)
        - 0.214 * math.sin(2 * moon_anomaly)
        - 0.110 * math.sin(elongation)
    )
    lit = (1 + math.cos(math.radians(phase_angle))) / 2
    return Moon(age=((180 - phase_angle) / 360) % 1, lit=lit)
