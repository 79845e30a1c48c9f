"""The keepers' work: mutations keep the log book, actions draw pictures and meet the weather."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from django_helisched import action, current_job, mutation
from lighthouse import logbook
from lighthouse.clock import utc_now
from lighthouse.julia import WATERS, draw_rows, julia_row
from lighthouse.models import LampSwitch, LogEntry, NightWatch, Postcard, Seascape, Tower
from lighthouse.postcards import caption
from lighthouse.postcards import draw_postcard as render_postcard
from lighthouse.storm import cut_the_cable, face_the_storm, fog_comes_in, salt_the_lens
from lighthouse.towers import SITES, TOWERS

SEA_WIDTH, SEA_HEIGHT = 160, 54
# More rows than this make the page slow to count, and nobody reads them.
KEPT_ROWS = 5000
KEPT_PICTURES = 64


def tower_of_the_turn(seconds: int) -> str:
    """Choose a tower by the clock, so that each has its turn without anybody keeping count."""
    return SITES[int(utc_now().timestamp()) // seconds % len(SITES)].slug


@mutation
def log_watch(tower: str) -> str:
    """Write one reading of sun, moon and lamp: exactly one line, whatever happens."""
    return logbook.write(LogEntry.Kind.WATCH, logbook.reading(TOWERS[tower], utc_now()), tower).text


@mutation
def read_next_tower() -> str:
    """Write a reading of the tower whose turn it is."""
    return log_watch(tower_of_the_turn(2))


@mutation(max_failures=5)
def light_lamp(tower: str, planned_at: str) -> str:
    """Light a lamp; ``planned_at`` is the sunset it was planned for, as ISO text."""
    return logbook.move_lamp(tower, lit=True, planned_at=datetime.fromisoformat(planned_at))


@mutation(max_failures=5)
def douse_lamp(tower: str, planned_at: str) -> str:
    """Put a lamp out; ``planned_at`` is the sunrise it was planned for, as ISO text."""
    return logbook.move_lamp(tower, lit=False, planned_at=datetime.fromisoformat(planned_at))


@mutation
def plan_lamps(tower: str) -> str:
    """Plan the next sunset's and sunrise's lamp, on this keeper's horizon.

    The idempotency key names tower and event, so planning twice plans once. A
    lamp that stands wrong now, as after a long stop, is put right at once.
    """
    site, now = TOWERS[tower], utc_now()
    today = site.local(now).date()
    days = [site.sun_day(today + timedelta(days=ahead)) for ahead in (-1, 0, 1)]
    planned = []
    for name, job, moments in (
        ("sunset", light_lamp, [day.set for day in days]),
        ("sunrise", douse_lamp, [day.rise for day in days]),
    ):
        moment = min((m for m in moments if m is not None and m > now), default=None)
        if moment is not None:
            key = f"{name}:{tower}:{moment:%Y-%m-%d}"
            job.using(idempotency_key=key, name=f"{name} at {site.name}").run_at(
                moment, tower, moment.isoformat(timespec="seconds")
            )
            planned.append(f"{name} {site.local(moment):%H:%M}")
    dark = site.is_dark(now)
    Tower.objects.filter(pk=tower, lamp_lit=not dark).update(lamp_lit=dark, lamp_since=now)
    text = ", ".join(planned) or f"polar {days[1].polar}: the lamp stays as it is"
    return logbook.write(LogEntry.Kind.PLAN, f"{site.name}: {text}", tower).text


@mutation(max_failures=6)
def sweep_beam(tower: str) -> float:
    """Turn the beam once and record how late it came; salt undoes the record with the sweep."""
    job, now = current_job(), utc_now()
    planned = job.fire_at or now
    LampSwitch.objects.create(
        tower_id=tower,
        movement=LampSwitch.Movement.SWEEP,
        planned_at=planned,
        started_at=now,
        job_id=job.id,
    )
    salt_the_lens(TOWERS[tower].name)
    return round((now - planned).total_seconds(), 3)


@action(max_failures=5, timeout=timedelta(seconds=30))
def draw_postcard(tower: str) -> str:
    """Draw the tower as it looks now and hang the picture up."""
    site, now = TOWERS[tower], utc_now()
    face_the_storm(site.name)
    line = caption(site, now)
    Postcard.objects.create(tower_id=tower, svg=render_postcard(site, now), caption=line, drawn_at=now)
    return line


@action(max_failures=5, timeout=timedelta(seconds=30))
def draw_next_postcard() -> str:
    """Draw the tower whose turn it is."""
    return draw_postcard(tower_of_the_turn(4))


@action(max_failures=4, timeout=timedelta(minutes=2))
def draw_sea(water: str = "") -> str:
    """Draw a sea; show the progress row by row, and stop at once when asked to."""
    name = water or list(WATERS)[int(utc_now().timestamp()) // 20 % len(WATERS)]
    job = current_job()
    rows = []
    for row in range(SEA_HEIGHT):
        job.raise_if_canceled()
        job.progress(row, SEA_HEIGHT, f"row {row} of {SEA_HEIGHT}")
        rows.append(julia_row(row, SEA_WIDTH, SEA_HEIGHT, WATERS[name]))
    Seascape.objects.create(svg=draw_rows(rows, name), caption=name, drawn_at=utc_now())
    return name


@mutation
def night_watch() -> int:
    """Call every tower: one child each, all of them or none."""
    watch = current_job().id
    NightWatch.objects.create(job_id=watch, called=len(SITES), called_at=utc_now())
    for site in SITES:
        call = stand_watch.using(name=f"watch at {site.name}", on_complete=watch_done, context={"watch": str(watch)})
        call.enqueue(site.slug)
    logbook.write(LogEntry.Kind.NIGHT, f"night watch: {len(SITES)} towers called")
    return len(SITES)


@action(max_failures=3, timeout=timedelta(seconds=30))
def stand_watch(tower: str) -> str:
    """Answer the night watch from one tower; sound the horn if fog comes in."""
    site = TOWERS[tower]
    face_the_storm(site.name)
    if fog_comes_in():
        fog_signal.using(name=f"horn at {site.name}").enqueue(tower)
    return logbook.reading(site, utc_now())


@mutation
def fog_signal(tower: str) -> str:
    """Sound the horn, once, and write it down."""
    text = f"{TOWERS[tower].name}: fog, horn sounded"
    return logbook.write(LogEntry.Kind.FOG, text, tower).text


@mutation
def watch_done(job_id: str, context: dict[str, str], result: dict[str, Any]) -> None:
    """Take one tower's report; the last one closes the watch.

    The counting UPDATE holds the row until this job commits, so exactly one
    report sees the numbers complete.
    """
    column = "reported" if result["kind"] == "success" else "silent"
    watches = NightWatch.objects.filter(pk=context["watch"])
    watches.update(**{column: F(column) + 1})
    watch = watches.first()
    if watch is None or watch.reported + watch.silent < watch.called:
        return
    watches.update(closed_at=utc_now())
    text = f"night watch: {watch.reported} towers reported, {watch.silent} silent"
    logbook.write(LogEntry.Kind.NIGHT, text)


@action
def check_fog() -> str:
    """Look out of the window of one tower."""
    tower = tower_of_the_turn(5)
    if not fog_comes_in():
        return f"{TOWERS[tower].name}: clear"
    fog_signal.using(name=f"horn at {TOWERS[tower].name}").enqueue(tower)
    return f"{TOWERS[tower].name}: fog"


@action(max_failures=2)
def cut_cable() -> str:
    """Kill the worker that runs this, in a hurricane; whoever takes over finds the cable spliced."""
    attempt = current_job().attempt
    if attempt == 1 and not cut_the_cable():
        return "the sea is too calm to cut a cable"
    text = f"the cable was cut; attempt {attempt} found it spliced"
    return logbook.write(LogEntry.Kind.STORM, text).text


@mutation
def tidy_log() -> dict[str, int]:
    """Drop what no page shows any more."""
    dropped = {}
    for model, kept in (
        (LogEntry, KEPT_ROWS),
        (LampSwitch, KEPT_ROWS),
        (Postcard, KEPT_PICTURES),
        (Seascape, 4),
    ):
        oldest = model.objects.order_by("-pk").values_list("pk", flat=True)[kept : kept + 1].first()
        stale = model.objects.filter(pk__lte=oldest or 0)
        dropped[model.__name__], _ = stale.delete()
    return dropped
