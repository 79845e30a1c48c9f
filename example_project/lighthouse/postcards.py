"""A postcard from a tower: its sky, sun, moon, sea and beam at one moment."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lighthouse.moon import Moon, moon_at
from lighthouse.svg import canvas, draw, points, render, text
from lighthouse.towers import LAMP_ALTITUDE, TowerSite

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

WIDTH, HEIGHT, HORIZON = 320, 220, 140
LAMP_X, LAMP_Y = 232, 62


@dataclass(frozen=True, slots=True)
class Sky:
    """Colours of one hour: the sky from top to horizon, and the sea."""

    top: str
    middle: str
    low: str
    sea: str


# From the highest sun down: each sky holds while the sun is above its altitude.
SKIES: tuple[tuple[float, Sky], ...] = (
    (12.0, Sky("#4f9bd9", "#8ec5ec", "#dceff7", "#2f7fa6")),
    (3.0, Sky("#5b8fc9", "#b9cfe2", "#f7e3b5", "#3a7a94")),
    (LAMP_ALTITUDE, Sky("#46659c", "#e39a6f", "#fbd08a", "#4a6478")),
    (-6.0, Sky("#2a3768", "#7b5a86", "#ee9a6b", "#33405e")),
    (-12.0, Sky("#151d40", "#2c345f", "#5d4d74", "#1c2743")),
    (-91.0, Sky("#070b1c", "#0e1633", "#1b2547", "#0b1428")),
)


def sky_for(sun: float) -> Sky:
    """Give the colours for a sun at this altitude."""
    return next(sky for limit, sky in SKIES if sun > limit)


def caption(site: TowerSite, moment: datetime) -> str:
    """Give the line under the picture: local time, sun and moon."""
    local = site.local(moment)
    moon = moon_at(moment)
    sun = site.sun_altitude(moment)
    return f"{local:%d %b %Y, %H:%M} {local.tzname()} · sun {sun:+.0f}° · {moon.name}, {moon.lit:.0%} lit"


def draw_postcard(site: TowerSite, moment: datetime) -> str:
    """Draw the view from the sea, as SVG text. The same moment gives the same picture."""
    sun = site.sun_altitude(moment)
    sky = sky_for(sun)
    dice = random.Random(f"{site.slug} {moment:%Y%m%d%H}")
    card = canvas(WIDTH, HEIGHT, f"{site.name}, {caption(site, moment)}")
    _gradient(card, sky)
    draw(card, "rect", width=WIDTH, height=HORIZON, fill="url(#sky)")
    if sun < -6:
        _stars(card, dice, count=int(min(60, -5 * sun)))
    _sun(card, sun)
    if sun < 3:
        _moon(card, moon_at(moment), southern=site.latitude < 0)
    _sea(card, sky, dice)
    if sun < LAMP_ALTITUDE:
        _beam(card)
    _tower(card, site, lit=sun < LAMP_ALTITUDE)
    _border(card, site, moment)
    return render(card)


def _gradient(card: Element, sky: Sky) -> None:
    gradient = draw(draw(card, "defs"), "linearGradient", id="sky", x1=0, y1=0, x2=0, y2=1)
    for offset, colour in (("0", sky.top), ("0.6", sky.middle), ("1", sky.low)):
        draw(gradient, "stop", offset=offset, stop_color=colour)


def _stars(card: Element, dice: random.Random, *, count: int) -> None:
    for _ in range(count):
        x, y = dice.uniform(4, WIDTH - 4), dice.uniform(4, HORIZON - 20)
        draw(card, "circle", cx=x, cy=y, r=dice.choice((0.5, 0.7, 1.0)), fill="#fff", opacity=dice.uniform(0.4, 1))


def _sun(card: Element, sun: float) -> None:
    if sun < -4:
        return
    y = HORIZON - 1.5 * sun if sun < 60 else 50.0
    colour = "#fff3c4" if sun > 8 else "#ffcf7a"
    draw(card, "circle", cx=92, cy=max(y, 26.0), r=22, fill=colour, opacity=0.25)
    draw(card, "circle", cx=92, cy=max(y, 26.0), r=13, fill=colour)


def _moon(card: Element, moon: Moon, *, southern: bool) -> None:
    """Draw the lit part between the limb and the terminator, mirrored south of the equator."""
    x, y, r = 150.0, 44.0, 12.0
    draw(card, "circle", cx=x, cy=y, r=r, fill="#3b4466", opacity=0.6)
    right = moon.waxing != southern
    terminator = abs(math.cos(2 * math.pi * moon.age)) * r
    # A crescent's inner edge curves with its limb, a gibbous moon's against it.
    limb, inner = int(right), int(right == (moon.lit > 0.5))
    path = f"M{x} {y - r}A{r} {r} 0 0 {limb} {x} {y + r}A{terminator:.2f} {r} 0 0 {inner} {x} {y - r}Z"
    draw(card, "path", d=path, fill="#f5efd6")


def _sea(card: Element, sky: Sky, dice: random.Random) -> None:
    draw(card, "rect", y=HORIZON, width=WIDTH, height=HEIGHT - HORIZON, fill=sky.sea)
    draw(card, "rect", y=HORIZON, width=WIDTH, height=2, fill=sky.low, opacity=0.5)
    for row in range(6):
        y = HORIZON + 8 + row * 8
        left = dice.uniform(-30, 0)
        waves = "".join(f"q10 -{2 + row * 0.5} 20 0t20 0" for _ in range(9))
        draw(card, "path", d=f"M{left:.1f} {y}{waves}", fill="none", stroke=sky.low, stroke_width=1, opacity=0.35)


def _beam(card: Element) -> None:
    left = points([(LAMP_X, LAMP_Y), (0, LAMP_Y - 26), (0, LAMP_Y + 14)])
    right = points([(LAMP_X, LAMP_Y), (WIDTH, LAMP_Y - 10), (WIDTH, LAMP_Y + 6)])
    for corners in (left, right):
        draw(card, "polygon", points=corners, fill="#fff2b0", opacity=0.32)
    draw(card, "circle", cx=LAMP_X, cy=LAMP_Y, r=13, fill="#fff2b0", opacity=0.45)


def _tower(card: Element, site: TowerSite, *, lit: bool) -> None:
    rock = [(176, 160), (190, 146), (205, 150), (216, 138), (250, 136), (262, 148), (284, 152), (298, 162)]
    draw(card, "polygon", points=points(rock), fill="#3a3a3f")
    first, second = site.paint
    for band in range(5):
        top, bottom = 72 + band * 13.2, 72 + (band + 1) * 13.2
        half_top, half_bottom = 8 + band * 1.1, 8 + (band + 1) * 1.1
        corners = [(LAMP_X - half_top, top), (LAMP_X + half_top, top)]
        corners += [(LAMP_X + half_bottom, bottom), (LAMP_X - half_bottom, bottom)]
        draw(card, "polygon", points=points(corners), fill=second if band % 2 else first)
    draw(card, "rect", x=LAMP_X - 11, y=69, width=22, height=3, fill="#26262a")
    glass = "#ffe27a" if lit else "#cfd8dc"
    draw(card, "rect", x=LAMP_X - 6, y=56, width=12, height=13, fill=glass, stroke="#26262a")
    draw(card, "path", d=f"M{LAMP_X - 8} 56L{LAMP_X} 47L{LAMP_X + 8} 56Z", fill="#26262a")
    draw(card, "rect", x=LAMP_X - 3, y=126, width=6, height=11, fill="#26262a")


def _border(card: Element, site: TowerSite, moment: datetime) -> None:
    draw(card, "rect", y=190, width=WIDTH, height=30, fill="#fbf6e9")
    text(card, "text", f"{site.name}, {site.country}", x=10, y=203, font_size=11, font_family="serif", fill="#2b2b30")
    line = f"{caption(site, moment)} · {site.character}"
    text(card, "text", line, x=10, y=214, font_size="7.5", font_family="sans-serif", fill="#5c5a55")
    draw(card, "rect", x=1, y=1, width=WIDTH - 2, height=HEIGHT - 2, fill="none", stroke="#fbf6e9", stroke_width=3)
