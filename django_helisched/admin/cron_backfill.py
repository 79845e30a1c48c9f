"""The page that makes up for missed occurrences of a cron: it lists them first, and enqueues on POST."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched.admin import reports, times
from django_helisched.admin.cron_editing import METHODS, EditableAdmin
from django_helisched.admin.cron_fields import instant_in, text_of_instant
from django_helisched.admin.cron_operations import run_obstacle
from django_helisched.admin.operations import Button
from django_helisched.crons.backfill import MAX_BACKFILL
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.crons.wall_clock import zone
from django_helisched.exceptions import HelischedError
from django_helisched.inspection.rows import damage_of
from django_helisched.scheduler import crons

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from django_helisched.admin.operations import Text
    from django_helisched.models import Cron
    from django_helisched.scheduler.backfilling import Backfill

PERMISSION: Final = "run_cron"
MAX_LISTED: Final = 100


class BackfillForm(forms.Form):
    """From when to when, in the cron's zone."""

    start = forms.CharField(label=_("From"), help_text=_("Such as 2027-03-28 09:30. Both ends are included."))
    end = forms.CharField(label=_("To"))

    def __init__(self, data: Any, *, tz: tzinfo, now: datetime) -> None:
        self.tz = tz
        super().__init__(data, initial={"end": text_of_instant(now.replace(microsecond=0), tz)})

    def clean_start(self) -> datetime:
        """Return the instant."""
        return instant_in(self.cleaned_data["start"], self.tz)

    def clean_end(self) -> datetime:
        """Return the instant."""
        return instant_in(self.cleaned_data["end"], self.tz)

    @property
    def span(self) -> str:
        """Return the time of a valid form as one text."""
        return f"{self.cleaned_data['start'].isoformat()}/{self.cleaned_data['end'].isoformat()}"


class BackfillAdmin(EditableAdmin):
    """Crons whose missed occurrences can be made up for."""

    def get_urls(self) -> list[URLPattern]:
        """Add the page."""
        view = self.admin_site.admin_view(self.backfill_view)
        return [path("<path:object_id>/backfill/", view, name="helisched_cron_backfill"), *super().get_urls()]

    def buttons_of(self, request: HttpRequest, row: Cron) -> list[Button]:
        """Return the verbs, with the ways to the form and to this page."""
        buttons = [*self.edit_button(request, row), *super().buttons_of(request, row)]
        if self.may(request, PERMISSION):
            url = self.address_back(request, "backfill", row.pk)
            buttons.append(Button(label=_("Backfill"), url=url, obstacle=_obstacle(row), is_grave=False))
        return buttons

    def backfill_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for the time and list what was missed in it; enqueue on POST, unless a preview is asked for."""
        if request.method not in METHODS:
            return HttpResponseNotAllowed(METHODS)
        row = self.get_object(request, unquote(object_id))
        if not (self.has_view_permission(request, row) and self.may(request, PERMISSION)):
            raise PermissionDenied
        if row is None:
            return self.not_found(request, object_id)
        tz = _zone_of(row)
        form = BackfillForm(request.POST if request.method == "POST" else None, tz=tz, now=self.now())
        found = None
        if form.is_bound and form.is_valid() and not _obstacle(row):
            # A time that was changed after its preview is listed first, too.
            preview = "_preview" in request.POST or request.POST.get("_seen", form.span) != form.span
            found = _backfill(row, form, preview=preview)
            if found is not None and not preview:
                return self._backfilled(request, row, found, form)
        summary = {} if found is None else {**_summary(found, tz), "seen": form.span}
        return self._backfill_page(request, row, form, summary)

    def _backfilled(self, request: HttpRequest, row: Cron, found: Backfill, form: BackfillForm) -> HttpResponse:
        text = _text_of(found, form)
        if found.job_ids:
            reports.log_changes(reports.Order(request, [row.pk]), [(row, text)])
        messages.add_message(request, messages.SUCCESS if found.job_ids else messages.WARNING, text)
        for sentence in _remarks(found):
            messages.warning(request, sentence)
        return HttpResponseRedirect(self.address_back(request, "change", row.pk))

    def _backfill_page(
        self, request: HttpRequest, row: Cron, form: BackfillForm, summary: dict[str, Any]
    ) -> HttpResponse:
        heading, back = self.heading_of(row), self.address_back(request, "change", row.pk)
        title = gettext("Backfill: %(name)s") % {"name": heading}
        crumbs = [self.list_crumb(request), (heading, back), (gettext("Backfill"), None)]
        context = {"form": form, "row": row, "obstacle": _obstacle(row), "back": back, "cap": MAX_BACKFILL, **summary}
        return self.rendered(request, "helisched/backfill.html", title, crumbs, context)


def _obstacle(row: Cron) -> Text:
    return _("Its row is damaged.") if damage_of(row) else run_obstacle(row)


def _zone_of(row: Cron) -> tzinfo:
    try:
        return zone(row.tz)
    except InvalidSchedule:
        return UTC


def _backfill(row: Cron, form: BackfillForm, *, preview: bool) -> Backfill | None:
    given = form.cleaned_data
    try:
        return crons.backfill(row.pk, given["start"], given["end"], preview=preview)
    except HelischedError as error:
        form.add_error(None, str(error))
        return None


def _text_of(found: Backfill, form: BackfillForm) -> str:
    start, end = (f"{form.cleaned_data[name]:%Y-%m-%d %H:%M:%S}" for name in ("start", "end"))
    span = {"count": len(found.job_ids), "start": start, "end": end}
    return gettext("Backfilled %(count)d from %(start)s to %(end)s UTC.") % span


def _summary(found: Backfill, tz: tzinfo) -> dict[str, Any]:
    return {
        "previewed": True,
        "count": len(found.due),
        "due": [times.in_zone(moment, tz) for moment in found.due[:MAX_LISTED]],
        "unlisted": max(0, len(found.due) - MAX_LISTED),
        "remarks": _remarks(found),
    }


def _remarks(found: Backfill) -> list[str]:
    remarks = []
    if found.left:
        text = gettext("%(count)d more were missed in this time; backfill again for them.")
        remarks.append(text % {"count": found.left})
    if found.unknown:
        text = gettext("%(count)d were missed under an earlier schedule, and their instants are not known any more.")
        remarks.append(text % {"count": found.unknown})
    return remarks
