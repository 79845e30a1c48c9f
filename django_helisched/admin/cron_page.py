"""The sections of one cron's page, and what is wrong with a cron."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_helisched.admin import cells, times
from django_helisched.admin.arguments import show_call
from django_helisched.admin.job_page import log_entries
from django_helisched.admin.schedules import describe, expression_of
from django_helisched.crons.preview import preview
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.crons.spec import notices, parse_spec
from django_helisched.crons.wall_clock import zone
from django_helisched.functions import find
from django_helisched.inspection.rows import damage_of, read_rows, rows_of
from django_helisched.models import Fire, Job
from django_helisched.scheduler.editing import SOURCES

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from django.http import HttpRequest

    from django_helisched.admin.pages import ReadOnlyAdmin
    from django_helisched.models import Cron

MAX_FIRES: Final = 50
MAX_PREVIEW: Final = 10


class Scheduled(Protocol):
    """What decides when a cron fires: of a row, or of a form."""

    spec: Any
    tz: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that keeps a cron from firing: a word, a sentence or "", and whether it is a fault."""

    label: str
    text: str = ""
    is_bad: bool = False


def troubles_of(cron: Cron) -> list[Trouble]:
    """Return everything that keeps ``cron`` from firing; nothing here raises for a broken row."""
    troubles = []
    damage = damage_of(cron)
    if damage:
        troubles.append(Trouble(_("damaged"), cells.damage_text(damage), is_bad=True))
    if cron.archived_at:
        troubles.append(Trouble(_("archived"), archived_text(cron)))
    if cron.paused_at:
        troubles.append(Trouble(_("paused"), _paused_text(cron)))
    if not cron.enabled:
        text = (
            _("It is switched off in its form.") if cron.source in SOURCES else _("It is declared with enabled=False.")
        )
        troubles.append(Trouble(_("disabled"), text))
    return [*troubles, *_faults(cron)] if not damage else troubles


def archived_text(cron: Cron) -> str:
    """Return how the cron came out of use."""
    return _("It was deleted.") if cron.source in SOURCES else _("It was removed from the code.")


def _paused_text(cron: Cron) -> str:
    by = _("by %(name)s") % {"name": cron.paused_by} if cron.paused_by else ""
    return ": ".join(part for part in (by, cron.pause_reason) if part)


def _faults(cron: Cron) -> list[Trouble]:
    fault = schedule_fault(cron)
    if fault:
        return [Trouble(_("broken"), fault, is_bad=True)]
    faults = []
    if find(cron.fn_path) is None and not cron.archived_at:
        text = _("This process does not know the function %(path)s.") % {"path": cron.fn_path}
        faults.append(Trouble(_("unknown function"), text, is_bad=True))
    if cron.last_error:
        faults.append(Trouble(_("error"), cron.last_error, is_bad=True))
    elif cron.next_run_at is None and not cron.archived_at and cron.enabled and not cron.paused_at:
        faults.append(Trouble(_("over"), _("No occurrence is left.")))
    return faults


def schedule_fault(cron: Cron) -> str:
    """Return why the stored schedule or zone cannot be read, or ""."""
    try:
        parse_spec(cron.spec)
        zone(cron.tz)
    except InvalidSchedule as error:
        return str(error)
    return ""


def fires_to_come(cron: Scheduled, now: datetime, anchor: datetime) -> list[dict[str, Any]]:
    """Return the next fires of a schedule, a row each; raise InvalidSchedule for one that cannot be read."""
    rows = preview(cron.spec, cron.tz, now, MAX_PREVIEW, anchor=anchor, start=cron.start, end=cron.end)
    return [
        {
            "local": times.in_zone(row.due_at, zone(cron.tz)),
            "utc": f"{row.due_at:%Y-%m-%d %H:%M:%S}",
            "distance": times.relative(row.due_at, now),
            "note": row.note,
        }
        for row in rows
    ]


class CronPage:
    """What there is to know about one cron, for one reader."""

    def __init__(self, page: ReadOnlyAdmin, request: HttpRequest, cron: Cron) -> None:
        self.page = page
        self.request = request
        self.cron = cron
        self.now = page.now()

    def sections(self) -> dict[str, Any]:
        """Return the template's context."""
        cron = self.cron
        may_see_args = self.page.may(self.request, "view_job_args")
        return {
            "troubles": troubles_of(cron),
            "summary": [(label, value) for label, value in self.summary() if value not in ("", None)],
            "notices": self.notices(),
            "may_see_args": may_see_args,
            "arguments": show_call(cron.fn_path, cron.args, cron.kwargs) if may_see_args else [],
            "is_elsewhere": cron.tz != "UTC",
            "next_fires": self.next_fires(),
            "fires": self.fires(),
            "jobs_link": self.page.link_to_list(Job, {"q": f"cron:{cron.pk}"}, _("Jobs of this cron")),
            "entries": log_entries(cron),
            "history_url": self.page.address("history", cron.pk),
        }

    def summary(self) -> list[tuple[str, Any]]:
        """Return labels and values; empty values are left out."""
        cron, now = self.cron, self.now
        words, written = self.schedule()
        return [
            (_("Schedule"), words),
            (_("Expression"), format_html("<code>{}</code>", written) if written else ""),
            (_("Zone"), cron.tz),
            (_("Function"), format_html("<code>{}</code>", cron.fn_path)),
            (_("Declared by"), " · ".join(part for part in (cron.source, cron.declared_by) if part)),
            (_("Space"), cron.space),
            (_("Next fire"), times.full_instant(cron.next_run_at, now) if cron.next_run_at else ""),
            (_("Last fire"), times.full_instant(cron.last_fire_at, now) if cron.last_fire_at else ""),
            (_("Fired"), str(cron.fired)),
            (_("Missed"), str(cron.missed)),
            (_("Counted since"), times.full_instant(cron.counted_since, now)),
            (_("Catch-up"), cron.get_catch_up_display()),
            (_("Overlap"), cron.get_overlap_display()),
            (_("Jitter"), times.text_of_duration(cron.jitter) if cron.jitter else ""),
            (_("Starts"), times.full_instant(cron.start, now) if cron.start else ""),
            (_("Ends"), times.full_instant(cron.end, now) if cron.end else ""),
            (_("Queue"), cron.queue),
            (_("Priority"), str(cron.priority) if cron.priority is not None else ""),
            (_("Failures allowed"), str(cron.max_failures) if cron.max_failures is not None else ""),
            (_("Paused"), times.full_instant(cron.paused_at, now) if cron.paused_at else ""),
            (_("Archived"), times.full_instant(cron.archived_at, now) if cron.archived_at else ""),
            (_("Time zone data"), cron.tzdata_version),
        ]

    def schedule(self) -> tuple[str, str]:
        """Return the schedule in words and as written; of a broken one, what is stored."""
        try:
            return describe(self.cron.spec), expression_of(self.cron.spec)
        except InvalidSchedule:
            return "", str(self.cron.spec)[:200]

    def notices(self) -> tuple[str, ...]:
        """Return what is legal in the expression but easily meant otherwise."""
        try:
            written = expression_of(self.cron.spec)
            return notices(written) if written else ()
        except InvalidSchedule:
            return ()

    def next_fires(self) -> list[dict[str, Any]]:
        """Return the fires to come, as the scheduler itself computes them."""
        cron = self.cron
        try:
            return fires_to_come(cron, self.now, cron.anchor)
        except InvalidSchedule:
            return []

    def fires(self) -> list[dict[str, Any]]:
        """Return what became of the newest occurrences, newest first."""
        rows = rows_of(Fire).filter(cron_id=self.cron.pk).order_by("-due_at")[:MAX_FIRES]
        return [self._fire(fire) for fire in read_rows(rows)]

    def _instant(self, moment: datetime | None) -> Any:
        """Return the wall-clock time in the cron's zone, in UTC where that is unknown."""
        try:
            tz: tzinfo = zone(self.cron.tz)
        except InvalidSchedule:
            tz = UTC
        return times.short_instant(moment, self.now, "" if moment is None else times.compact(moment, tz, self.now))

    def _fire(self, fire: Fire) -> dict[str, Any]:
        return {
            "due": self._instant(fire.due_at),
            "last_due": self._instant(fire.last_due_at) if fire.count != 1 else "",
            "outcome": fire.get_outcome_display(),
            "outcome_key": fire.outcome,
            "count": fire.count,
            "lateness": times.text_of_duration(fire.lateness) if fire.lateness else times.NOTHING,
            "job": self.page.link(Job, fire.job_id, cells.short_id(fire.job_id)) if fire.job_id else "",
            "reason": fire.reason,
        }
