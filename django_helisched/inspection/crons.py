"""The crons of a project: what is stored, when each fires next, what an expression means."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django_helisched import conf, wiring
from django_helisched.crons.preview import crowding, preview
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.crons.spec import CronSpec, IntervalSpec, notices, parse_spec
from django_helisched.crons.wall_clock import tzdata_version, zone
from django_helisched.exceptions import InvalidOption
from django_helisched.inspection.answer import Answer, table, text_of
from django_helisched.models import Attempt, Job
from django_helisched.scheduler import crons

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.crons.expression import CronExpression, DayRule
    from django_helisched.crons.preview import PreviewRow
    from django_helisched.crons.spec import Spec

MOST = 1000  # fires of one answer
_RUNS = 50  # the newest runs whose durations are looked at


def next_fires(name: str, *, space: str = "", count: int = 10) -> Answer:
    """Return when a stored cron fires next, with what the clocks and its own runs do to it.

    Raises InvalidOption where none or several have the name, InvalidSchedule for a row
    whose schedule cannot be read.
    """
    cron = crons.get(name, space=space)
    now = wiring.cron_store().now()
    start = cron.next_run_at if cron.next_run_at is not None and cron.next_run_at > now else None
    rows = preview(
        cron.spec, cron.tz, now, _checked(count), anchor=cron.anchor, start=start or cron.start, end=cron.end
    )
    remarks = [*_state(cron, now), *_notices(parse_spec(cron.spec))]
    slowest = _slowest_run(cron)
    if slowest is not None:
        remarks += crowding(rows, slowest, cron.overlap)
    head = f"{_title(cron)}: {words_of(cron.spec)}, {cron.tz}, {cron.fn_path}"
    data = {**_facts(cron), "remarks": remarks, "next": [_fire(row) for row in rows]}
    return Answer(data, [head, *remarks, "", *_fires(rows, cron.tz, now)])


def listing(*, space: str | None = None, archived: bool = False) -> Answer:
    """Return every cron that is stored: those of one space, and the archived ones where asked."""
    found = [cron for cron in wiring.cron_store().list(space=space) if archived or cron.archived_at is None]
    rows = [
        (
            cron.name,
            cron.space,
            cron.source,
            words_of(cron.spec),
            cron.tz,
            _shown(cron.next_run_at),
            _status(cron),
            str(cron.fired),
            str(cron.missed),
        )
        for cron in found
    ]
    head = ("name", "space", "source", "schedule", "zone", "next (UTC)", "status", "fired", "missed")
    lines = table(head, rows) if rows else ["No crons are stored. runscheduler stores what the code declares."]
    return Answer({"crons": [_facts(cron) for cron in found]}, lines)


def explanation(expr: str, *, tz: str | None = None, count: int = 5) -> Answer:
    """Return what a cron expression selects, and when it fires next in a zone.

    Raises InvalidSchedule, which points at the place to blame.
    """
    zone_name = conf.get_settings().tz if tz is None else tz
    zone(zone_name)
    expression = CronSpec(expr).expression
    now = wiring.cron_store().now()
    rows = preview(CronSpec(expr), zone_name, now, _checked(count))
    selected = _selected(expression)
    remarks = list(notices(expression))
    data = {
        "expr": expression.text,
        "tz": zone_name,
        "tzdata": tzdata_version(),
        "selects": selected,
        "remarks": remarks,
        "next": [_fire(row) for row in rows],
    }
    fields = [f"{field:13} {', '.join(values)}" for field, values in selected.items()]
    return Answer(data, [expression.text, *fields, *remarks, "", *_fires(rows, zone_name, now)])


def words_of(spec: str) -> str:
    """Return a stored schedule as it was written: an expression in quotes, or "every 30 s"."""
    try:
        schedule = parse_spec(spec)
    except InvalidSchedule:
        return "unreadable"
    if isinstance(schedule, IntervalSpec):
        return f"every {text_of(timedelta(milliseconds=schedule.ms))}"
    return f'"{schedule.expression.text}"'


def _selected(expression: CronExpression) -> dict[str, list[str]]:
    days = expression.days
    selected: dict[str, Sequence[Any]] = {
        "seconds": expression.seconds,
        "minutes": expression.minutes,
        "hours": expression.hours,
        "months": sorted(days.months),
    }
    if days.by_month_day:
        selected["days of month"] = [*sorted(days.month_days), *(["last"] if days.last_day else [])]
    if days.by_weekday:
        selected["weekdays"] = _weekdays(days)
    return {field: _ranges(values) for field, values in selected.items()}


def _weekdays(days: DayRule) -> list[str]:
    names = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
    listed = [names[day % 7] for day in sorted(days.weekdays)]
    listed += [f"last {names[day % 7]}" for day in sorted(days.last_weekdays)]
    if days.nth_weekday is not None:
        day, number = days.nth_weekday
        listed.append(f"{names[day % 7]} number {number}")
    return listed


def _ranges(values: Sequence[Any]) -> list[str]:
    """Return numbers as "0-59", everything else as it is."""
    spans: list[list[Any]] = []
    for value in values:
        if spans and isinstance(value, int) and isinstance(spans[-1][-1], int) and value == spans[-1][-1] + 1:
            spans[-1].append(value)
        else:
            spans.append([value])
    return [str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans]


def _notices(schedule: Spec) -> list[str]:
    return list(notices(schedule.expression)) if isinstance(schedule, CronSpec) else []


def _state(cron: CronSnapshot, now: datetime) -> list[str]:
    """Say why the fires below would not happen, or not as the schedule has them."""
    told = []
    if cron.archived_at is not None:
        told.append(f"Archived since {_shown(cron.archived_at)} UTC: it fires no more.")
    if cron.paused_at is not None:
        who = f" by {cron.paused_by}" if cron.paused_by else ""
        why = f": {cron.pause_reason}" if cron.pause_reason else ""
        told.append(f"Paused since {_shown(cron.paused_at)} UTC{who}{why}. It does not fire until it is resumed.")
    if not cron.enabled:
        told.append("Not enabled: it does not fire until its declaration says enabled=True.")
    if cron.last_error:
        told.append(f"Its last error: {cron.last_error}")
    if cron.is_active and cron.next_run_at is not None and cron.next_run_at <= now:
        told.append(f"Overdue since {_shown(cron.next_run_at)} UTC: no scheduler has fired it yet.")
    return told


def _slowest_run(cron: CronSnapshot) -> timedelta | None:
    alias = conf.get_settings().database
    newest = list(Job.objects.using(alias).filter(cron_id=cron.id).order_by("-id").values_list("id", flat=True)[:_RUNS])
    ended = Attempt.objects.using(alias).filter(job_id__in=newest, started_at__isnull=False)
    runs = [end - begun for begun, end in ended.values_list("started_at", "ended_at") if begun is not None]
    return max(runs, default=None)


def _fires(rows: Sequence[PreviewRow], tz: str, now: datetime) -> list[str]:
    if not rows:
        return ["It has no further occurrence."]
    cells = [
        (f"{row.local:%a %Y-%m-%d %H:%M:%S %z}", _shown(row.due_at), text_of(row.due_at - now), row.note)
        for row in rows
    ]
    return table((tz, "UTC", "in", ""), cells)


def _fire(row: PreviewRow) -> dict[str, str]:
    return {"due_at": row.due_at.isoformat(), "local": row.local.isoformat(), "note": row.note}


def _facts(cron: CronSnapshot) -> dict[str, Any]:
    return {
        "id": str(cron.id),
        "source": cron.source,
        "space": cron.space,
        "name": cron.name,
        "spec": cron.spec,
        "tz": cron.tz,
        "fn_path": cron.fn_path,
        "status": _status(cron),
        "next_run_at": None if cron.next_run_at is None else cron.next_run_at.isoformat(),
        "last_fire_at": None if cron.last_fire_at is None else cron.last_fire_at.isoformat(),
        "fired": cron.fired,
        "missed": cron.missed,
        "last_error": cron.last_error,
    }


def _status(cron: CronSnapshot) -> str:
    states = {
        "archived": cron.archived_at is not None,
        "paused": cron.paused_at is not None,
        "disabled": not cron.enabled,
        "broken": bool(cron.last_error) and cron.next_run_at is None,
        "over": cron.next_run_at is None,
    }
    return next((name for name, holds in states.items() if holds), "active")


def _title(cron: CronSnapshot) -> str:
    return f"{cron.space}/{cron.name}" if cron.space else cron.name


def _shown(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"


def _checked(count: int) -> int:
    if not 1 <= count <= MOST:
        raise InvalidOption(f"--count {count} must be a whole number from 1 to {MOST}.")
    return count
