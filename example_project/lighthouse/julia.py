"""A sea out of a Julia set: honest work for a processor, row by row."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

from lighthouse.svg import canvas, draw, render

if TYPE_CHECKING:
    from collections.abc import Sequence

# From deep water to foam.
PALETTE = ("#08263d", "#0b3450", "#114763", "#1b5d78", "#2a778e", "#4694a2", "#74b4b6", "#abd3cd", "#e4f2ea")
WATERS: dict[str, complex] = {
    "Drake Passage": complex(-0.8, 0.156),
    "Bay of Biscay": complex(-0.7269, 0.1889),
    "Skagerrak": complex(-0.4, 0.6),
    "Roaring Forties": complex(0.285, 0.01),
    "Moskstraumen": complex(-0.835, -0.2321),
    "Sargasso Sea": complex(-0.70176, -0.3842),
}
ESCAPE = 2.0
DEPTH = 120
CELL = 4
# Each cell is the mean of SAMPLES x SAMPLES points: smooth water, and work enough to watch.
SAMPLES = 3


def julia_row(row: int, width: int, height: int, parameter: complex) -> list[int]:
    """Give one row's colours as indices into PALETTE."""
    step = 3.0 / width / SAMPLES
    lines = [
        [_colour(complex((x + 0.5 - width * SAMPLES / 2) * step, y), parameter) for x in range(width * SAMPLES)]
        for y in ((row * SAMPLES + line + 0.5 - height * SAMPLES / 2) * step for line in range(SAMPLES))
    ]
    return [_mean(lines, column * SAMPLES) for column in range(width)]


def _mean(lines: list[list[int]], start: int) -> int:
    return round(sum(sum(line[start : start + SAMPLES]) for line in lines) / SAMPLES**2)


def _colour(z: complex, parameter: complex) -> int:
    for step in range(DEPTH):
        if abs(z) > ESCAPE:
            return min(len(PALETTE) - 1, int(2.1 * math.log1p(step)))
        z = z * z + parameter
    return len(PALETTE) - 1


def draw_rows(rows: Sequence[Sequence[int]], title: str) -> str:
    """Draw rows of equal length as SVG text, one rectangle per run of a colour."""
    width, height = len(rows[0]), len(rows)
    card = canvas(width * CELL, height * CELL, title)
    card.set("shape-rendering", "crispEdges")
    draw(card, "rect", width=width * CELL, height=height * CELL, fill=PALETTE[0])
    for y, row in enumerate(rows):
        x = 0
        for colour, run in groupby(row):
            length = len(list(run))
            if colour:
                draw(card, "rect", x=x * CELL, y=y * CELL, width=length * CELL, height=CELL, fill=PALETTE[colour])
            x += length
    return render(card)
