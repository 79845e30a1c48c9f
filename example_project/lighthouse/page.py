"""What the public page shows, gathered from the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max

from lighthouse.lateness import lateness_chart
from lighthouse.models import LampSwitch, LogEntry, NightWatch, Postcard, Seascape, Storm, Tower
from lighthouse.storm import storm_level
from lighthouse.world import world_map

if TYPE_CHECKING:
    from datetime import date, datetime

    from lighthouse.towers import TowerSite

LOG_LINES = 14
WATCHES = 4
# Sixteen towers move about once a second together: these reach ten minutes back.
SWITCHES = 600


@dataclass(frozen=True, slots=True)
class TowerLine:
    """One line of the table of towers, in the keeper's own time."""

    site: TowerSite
    lit: bool
    local: str
    clock: str
    sun: float
    rise: str
    set: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The log book's totals; ``twice`` counts lines that one job wrote more than once."""

    lines: int
    jobs: int
    twice: int
    switches: int


def coast_context(now: datetime) -> dict[str, Any]:
    """Give the template's context."""
    towers = sorted(Tower.objects.all(), key=lambda tower: tower.site.longitude)
    level = storm_level()
    return {
        "now": now,
        "map": world_map(towers, now),
        "towers": [tower_line(tower, now) for tower in towers],
        "lit": sum(tower.lamp_lit for tower in towers),
        "chart": lateness_chart(towers, newest_switches()),
        "postcards": newest_postcards(),
        "seascape": Seascape.objects.defer("svg").first(),
        "log": LogEntry.objects.all()[:LOG_LINES],
        "watches": NightWatch.objects.all()[:WATCHES],
        "ledger": ledger(),
        "storm": level,
        "storm_name": Storm.Level(level).label,
        "levels": Storm.Level.choices,
        "hurricane": level == Storm.Level.HURRICANE,
    }


def tower_line(tower: Tower, now: datetime) -> TowerLine:
    """Give one line of the table."""
    site = tower.site
    local = site.local(now)
    offset = f"{local:%z}"
    rise, sunset = _rise_and_set(site, local.date())
    return TowerLine(
        site=site,
        lit=tower.lamp_lit,
        local=f"{local:%a %H:%M}",
        clock=f"UTC{offset[:3]}:{offset[3:5]}",
        sun=site.sun_altitude(now),
        rise=rise,
        set=sunset,
    )


def _rise_and_set(site: TowerSite, day: date) -> tuple[str, str]:
    sun = site.sun_day(day)
    if sun.rise is None or sun.set is None:
        return f"polar {sun.polar}", f"polar {sun.polar}"
    return f"{site.local(sun.rise):%H:%M}", f"{site.local(sun.set):%H:%M}"


def newest_switches() -> list[LampSwitch]:
    """Give the latest movements of all lamps, newest first."""
    return list(LampSwitch.objects.order_by("-pk")[:SWITCHES])


def newest_postcards() -> list[Postcard]:
    """Give each tower's newest postcard without its picture, newest first."""
    newest = Postcard.objects.order_by().values("tower").annotate(newest=Max("pk"))
    keys = [row["newest"] for row in newest]
    return list(Postcard.objects.filter(pk__in=keys).defer("svg").order_by("-pk"))


def ledger() -> Ledger:
    """Count the log book, and look for a line that a job wrote twice."""
    by_job = LogEntry.objects.exclude(job_id=None).order_by()
    twice = by_job.values("job_id", "kind", "tower").annotate(n=Count("pk")).filter(n__gt=1)
    return Ledger(
        lines=LogEntry.objects.count(),
        jobs=by_job.values("job_id").distinct().count(),
        twice=twice.count(),
        switches=LampSwitch.objects.count(),
    )
