"""Lines for the log book, and the state of the lamps. Called from jobs and from nowhere else."""

from __future__ import annotations

from datetime import datetime

from django_helisched import current_job
from lighthouse.clock import utc_now
from lighthouse.models import LampSwitch, LogEntry, Tower
from lighthouse.moon import moon_at
from lighthouse.towers import TOWERS, TowerSite


def write(kind: LogEntry.Kind, text: str, tower: str | None = None) -> LogEntry:
    """Write one line, in the transaction that is open."""
    return LogEntry.objects.create(
        kind=kind, text=text[:300], tower_id=tower, job_id=current_job().id, written_at=utc_now()
    )


def reading(site: TowerSite, moment: datetime) -> str:
    """Say what a keeper sees: the sun, the moon, the lamp's duty."""
    sun, moon = site.sun_altitude(moment), moon_at(moment)
    height = f"{abs(sun):.1f}° {'up' if sun >= 0 else 'down'}"
    duty = "lamp on" if site.is_dark(moment) else "lamp off"
    local = site.local(moment)
    return f"{site.name} {local:%H:%M} {local.tzname()}: sun {height}, {moon.name}, {duty}"


def move_lamp(tower: str, *, lit: bool, planned_at: datetime) -> str:
    """Light or douse a lamp and record how late that was."""
    now = utc_now()
    movement = LampSwitch.Movement.LIT if lit else LampSwitch.Movement.DARK
    Tower.objects.filter(pk=tower).update(lamp_lit=lit, lamp_since=now)
    LampSwitch.objects.create(
        tower_id=tower, movement=movement, planned_at=planned_at, started_at=now, job_id=current_job().id
    )
    text = f"{TOWERS[tower].name}: lamp {'lit at sunset' if lit else 'put out at sunrise'}"
    write(LogEntry.Kind.LAMP, text, tower)
    return text
