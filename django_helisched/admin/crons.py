"""The list of crons and the page of one cron. A row that cannot be read is flagged and harms no other."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ActionForm
from django.db.models import Q
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched.admin import cells, times
from django_helisched.admin.cron_backfill import BackfillAdmin
from django_helisched.admin.cron_operations import DELETE, PAUSE, RESUME, RUN_NOW
from django_helisched.admin.cron_page import CronPage, troubles_of
from django_helisched.admin.schedules import describe, expression_of
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.crons.wall_clock import zone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from django_helisched.models import Cron


class StatusFilter(admin.SimpleListFilter):
    """What a cron is doing; archived ones are shown only where they are asked for."""

    title = _("status")
    parameter_name = "status"
    conditions: ClassVar[dict[str, Q]] = {
        "current": Q(archived_at__isnull=True),
        "active": Q(archived_at__isnull=True, paused_at__isnull=True, enabled=True),
        "paused": Q(archived_at__isnull=True, paused_at__isnull=False),
        "errors": Q(archived_at__isnull=True) & ~Q(last_error=""),
        "archived": Q(archived_at__isnull=False),
        "all": Q(),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the conditions by name."""
        return [
            ("current", _("current")),
            ("active", _("active")),
            ("paused", _("paused")),
            ("errors", _("with an error")),
            ("archived", _("archived")),
            ("all", _("everything")),
        ]

    def value(self) -> str:
        """Return the status asked for; what is none means the default."""
        given = super().value()
        return given if given in self.conditions else "current"

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Give the choices without the stock "All", which would mean the default here."""
        choices = super().choices(changelist)
        next(choices)
        return choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Cron]) -> QuerySet[Cron]:
        """Narrow the crons to the status."""
        return queryset.filter(self.conditions[self.value()])


class ReasonActionForm(ActionForm):
    """The list's actions, with the reason of a pause."""

    reason = forms.CharField(label=_("Reason (pause):"), required=False, max_length=300)


class CronAdmin(BackfillAdmin):
    """Crons by name."""

    page_template = "helisched/cron.html"
    operations = (PAUSE, RESUME, RUN_NOW, DELETE)
    actions = ["pause_selected", "resume_selected", "run_selected"]
    action_form = ReasonActionForm
    list_display = ["cron", "schedule", "status", "next_fire", "last_fire"]
    list_display_links = ["cron"]
    list_filter = [StatusFilter]
    filter_parameters: ClassVar[frozenset[str]] = frozenset({"status"})
    search_fields = ["name", "fn_path", "space"]
    search_help_text = _("Part of the name, the function or the space.")
    ordering = ["name", "space", "source"]

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may pause and resume; Django asks it for the actions."""
        return self.may(request, PAUSE.permission)

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may run crons now; Django asks it for the action."""
        return self.may(request, RUN_NOW.permission)

    @admin.action(permissions=["pause"], description=_("Pause the selected crons"))
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[Cron]) -> None:
        """Pause the selection for the reason given beside the action."""
        self.perform_on_selection(request, queryset, PAUSE, _reason_given(request))

    @admin.action(permissions=["pause"], description=_("Resume the selected crons"))
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Cron]) -> None:
        """Resume what is paused of the selection."""
        self.perform_on_selection(request, queryset, RESUME)

    @admin.action(permissions=["run"], description=_("Run the selected crons now"))
    def run_selected(self, request: HttpRequest, queryset: QuerySet[Cron]) -> None:
        """Enqueue one job of each cron of the selection."""
        self.perform_on_selection(request, queryset, RUN_NOW)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Cron], search_term: str
    ) -> tuple[QuerySet[Cron], bool]:
        """Search as Django does; a NUL, which no text column holds, finds nothing."""
        if "\x00" in search_term:
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def page_of(self, request: HttpRequest, row: Cron) -> dict[str, Any]:
        """Return the sections of the cron's page."""
        return {**CronPage(self, request, row).sections(), "buttons": self.buttons_of(request, row)}

    @admin.display(description=_("cron"))
    def cron(self, cron: Cron) -> SafeString:
        """Return the name, the function and who declared it."""
        return format_html(
            '<span class="hs-fn">{}</span><span class="hs-second">{} · {}</span>',
            str(cron),
            cells.short_name(cron.fn_path),
            cron.source,
        )

    @admin.display(description=_("schedule"))
    def schedule(self, cron: Cron) -> SafeString:
        """Return the schedule in words and as it was written."""
        try:
            words, written = describe(cron.spec), expression_of(cron.spec)
        except InvalidSchedule:
            return format_html("<code>{}</code>", cron.spec[:80])
        if not written:
            return format_html("{}", words)
        return format_html(
            '{}<span class="hs-second"><code>{}</code> <span class="hs-whole">{}</span></span>', words, written, cron.tz
        )

    @admin.display(description=_("status"))
    def status(self, cron: Cron) -> SafeString:
        """Return whether it fires, and everything that keeps it from doing so."""
        troubles = troubles_of(cron)
        flags = [(cells.flag(trouble.label, is_bad=trouble.is_bad),) for trouble in troubles]
        remarks = format_html_join("", '<span class="hs-second">{}</span>', ((t.text,) for t in troubles if t.text))
        return format_html("{}{}", format_html_join(" ", "{}", flags or [(cells.flag(gettext("active")),)]), remarks)

    @admin.display(description=_("next fire"))
    def next_fire(self, cron: Cron) -> SafeString | str:
        """Return when it fires next, in its own zone and in UTC."""
        if cron.next_run_at is None or cron.paused_at or not cron.enabled:
            return times.NOTHING
        now = self.now()
        late = gettext("late by %(time)s") % {"time": times.between(cron.next_run_at, now)}
        distance = times.short_instant(cron.next_run_at, now, late if cron.next_run_at < now else "")
        lines = format_html_join("", "{}", ((cells.second_line(line),) for line in wall_clocks(cron, now)))
        return format_html("{}{}", distance, lines)

    @admin.display(description=_("last fire"))
    def last_fire(self, cron: Cron) -> SafeString | str:
        """Return when it fired last, how many occurrences became jobs and how many did not."""
        fired = cells.second_line(gettext("%(count)s fired") % {"count": cron.fired})
        missed = gettext("%(count)s missed") % {"count": cron.missed} if cron.missed else ""
        line = format_html('<span class="hs-second hs-missed">{}</span>', missed) if missed else ""
        return format_html("{}{}{}", times.short_instant(cron.last_fire_at, self.now()), fired, line)


def wall_clocks(cron: Cron, now: datetime) -> list[str]:
    """Return the next fire in the cron's zone and in UTC, in UTC alone where the zone is unknown."""
    if cron.next_run_at is None:
        return []
    universal = times.compact(cron.next_run_at, UTC, now)
    try:
        local = times.compact(cron.next_run_at, zone(cron.tz), now)
    except InvalidSchedule:
        return [universal]
    return [universal] if local == universal else [local, universal]


def _reason_given(request: HttpRequest) -> str:
    # The list has a form above and maybe one below; the one whose button was pressed counts.
    given = request.POST.getlist("reason")
    index = request.POST.get("index", "0")
    chosen = given[int(index)] if index.isdecimal() and int(index) < len(given) else "".join(given[:1])
    return chosen.strip()[:300]
