"""The scheduler's own quality: how late every lamp moved, on a logarithmic scale."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lighthouse.models import LampSwitch, Tower

WIDTH, LEFT, RIGHT = 1000, 170, 20
TOP, ROW = 30, 20
# Ten dots for each of sixteen towers, and a median mark: under 180 marks in all.
DOTS = 10
# From a millisecond to a hundred seconds. What is outside stands on the rim.
LOWEST, HIGHEST = -3, 2
TICKS = ((-3, "1 ms"), (-2, "10 ms"), (-1, "100 ms"), (0, "1 s"), (1, "10 s"), (2, "100 s"))


@dataclass(frozen=True, slots=True)
class Dot:
    """One movement."""

    x: float
    y: float
    movement: str
    title: str


@dataclass(frozen=True, slots=True)
class Row:
    """One tower's movements; seconds are None while there are none."""

    name: str
    y: float
    dots: list[Dot]
    median_x: float | None
    count: int
    median: float | None
    worst: float | None


@dataclass(frozen=True, slots=True)
class LatenessChart:
    """Everything that the chart's template draws."""

    width: int
    height: int
    left: int
    ticks: list[tuple[float, str]]
    rows: list[Row]


def position(seconds: float) -> float:
    """Give the pixel of a lateness."""
    power = math.log10(max(seconds, 10.0**LOWEST))
    share = (min(power, HIGHEST) - LOWEST) / (HIGHEST - LOWEST)
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def lateness_chart(towers: list[Tower], switches: Iterable[LampSwitch]) -> LatenessChart:
    """Give the chart of the newest movements of each tower; ``switches`` come newest first."""
    newest: dict[str, list[LampSwitch]] = defaultdict(list)
    for switch in switches:
        if len(newest[switch.tower_id]) < DOTS:
            newest[switch.tower_id].append(switch)
    rows = [_row(tower, TOP + ROW * place, newest[tower.slug]) for place, tower in enumerate(towers)]
    return LatenessChart(
        width=WIDTH,
        height=TOP + ROW * len(rows) + 6,
        left=LEFT,
        ticks=[(position(10.0**power), label) for power, label in TICKS],
        rows=rows,
    )


def _row(tower: Tower, y: float, switches: list[LampSwitch]) -> Row:
    seconds = [switch.lateness.total_seconds() for switch in switches]
    middle = median(seconds) if seconds else None
    return Row(
        name=tower.site.name,
        y=y,
        dots=[
            Dot(position(late), y, switch.movement, f"{switch.get_movement_display()}, {late:.3f} s late")
            for late, switch in zip(seconds, switches, strict=True)
        ],
        median_x=None if middle is None else position(middle),
        count=len(seconds),
        median=middle,
        worst=max(seconds, default=None),
    )
