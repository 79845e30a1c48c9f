"""The pages that create and edit the crons of the database; those of the code are only told of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched.admin import reports
from django_helisched.admin.cron_form import CronForm, fingerprint
from django_helisched.admin.cron_operations import edit_obstacle
from django_helisched.admin.cron_page import fires_to_come
from django_helisched.admin.operations import Button, OperableAdmin
from django_helisched.admin.pages import READING
from django_helisched.crons.changes import anchor_at, is_same
from django_helisched.crons.operations import EDITABLE
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.crons.spec import CronSpec, notices
from django_helisched.crons.wall_clock import zone_names
from django_helisched.exceptions import Busy, HelischedError
from django_helisched.models import Cron
from django_helisched.scheduler import crons
from django_helisched.scheduler.editing import fields_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from django_helisched.admin.operations import Text
    from django_helisched.crons.cron import CronSnapshot

METHODS = (*READING, "POST")
# Columns by what the form calls them, for the log.
_WORDS = {"spec": "schedule", "fn_path": "function", "args": "arguments", "kwargs": "arguments", "tz": "zone"}
_CONFLICT = 409
_NAME_LENGTH = 128  # of the column declared_by


class EditableAdmin(OperableAdmin):
    """Crons with a form for those that the database holds."""

    def get_urls(self) -> list[URLPattern]:
        """Add the page of the form."""
        view = self.admin_site.admin_view(self.edit_view)
        return [path("<path:object_id>/edit/", view, name="helisched_cron_edit"), *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Crons are created by those who may see them and add them."""
        return self.has_view_permission(request) and self.may(request, "add_cron")

    def edit_button(self, request: HttpRequest, row: Cron) -> list[Button]:
        """Return the button that leads to the form, or none without the permission."""
        if not self.may(request, "change_cron"):
            return []
        url = self.address_back(request, "edit", row.pk)
        return [Button(label=_("Edit"), url=url, obstacle=edit_obstacle(row), is_grave=False)]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the empty form; create the cron on POST."""
        if request.method not in METHODS:
            return HttpResponseNotAllowed(METHODS)
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = CronForm(self._posted(request), row=None, may_see_args=True)
        if self._is_to_be_saved(request, form):
            created = self._created(request, form)
            if created is not None:
                return self._done(request, created, gettext("Created."), flag=ADDITION)
        return self._page(request, form, gettext("Add a cron"), None)

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form of one cron; change the cron on POST."""
        if request.method not in METHODS:
            return HttpResponseNotAllowed(METHODS)
        row = self.get_object(request, unquote(object_id))
        if not (self.has_view_permission(request, row) and self.may(request, "change_cron")):
            raise PermissionDenied
        if row is None:
            return self.not_found(request, object_id)
        obstacle = edit_obstacle(row)
        if obstacle:
            return self._refused(request, row, obstacle)
        snapshot = crons.get(row.pk)
        form = CronForm(self._posted(request), row=snapshot, may_see_args=self.may(request, "view_job_args"))
        if self._is_to_be_saved(request, form):
            text = _edited(snapshot, form)
            if text:
                return self._done(request, snapshot, text)
            if text is not None:
                messages.info(request, gettext("Nothing was changed."))
                return HttpResponseRedirect(self.address_back(request, "change", row.pk))
        return self._page(request, form, gettext("Edit %(name)s") % {"name": self.heading_of(row)}, row)

    def _posted(self, request: HttpRequest) -> Any:
        return request.POST if request.method == "POST" else None

    def _is_to_be_saved(self, request: HttpRequest, form: CronForm) -> bool:
        return form.is_bound and form.is_valid() and "_preview" not in request.POST

    def _created(self, request: HttpRequest, form: CronForm) -> CronSnapshot | None:
        given = form.changes()
        by = request.user.get_username()[:_NAME_LENGTH]
        try:
            return crons.create(
                form.cleaned_data["name"], given.pop("fn"), space=form.cleaned_data["space"], by=by, **given
            )
        except (HelischedError, TypeError) as error:
            form.blame(error, otherwise=None if isinstance(error, Busy) else "name")
            return None

    def _done(self, request: HttpRequest, cron: CronSnapshot, text: str, **flag: int) -> HttpResponse:
        rows = reports.rows_by_key(Cron, [cron.id])
        reports.log_changes(reports.Order(request, [cron.id]), [(row, text) for row in rows.values()], **flag)
        messages.success(request, text)
        return HttpResponseRedirect(self.address_back(request, "change", cron.id))

    def _refused(self, request: HttpRequest, row: Cron, obstacle: Text) -> HttpResponse:
        heading, back = self.heading_of(row), self.address_back(request, "change", row.pk)
        crumbs = [self.list_crumb(request), (heading, back), (gettext("Edit"), None)]
        context = {"obstacle": obstacle, "row": row, "back": back}
        response = self.rendered(request, "helisched/confirm.html", heading, crumbs, context)
        if request.method == "POST":
            response.status_code = _CONFLICT
        return response

    def _page(self, request: HttpRequest, form: CronForm, title: str, row: Cron | None) -> HttpResponse:
        back = self.address_back(request, *(["changelist"] if row is None else ["change", row.pk]))
        here = [] if row is None else [(self.heading_of(row), back)]
        crumbs = [self.list_crumb(request), *here, (title, None)]
        context = {"form": form, "zones": zone_names(), "back": back, **self._preview(request, form)}
        return self.rendered(request, "helisched/cron_form.html", title, crumbs, context)

    def _preview(self, request: HttpRequest, form: CronForm) -> dict[str, Any]:
        if "_preview" not in request.POST or {"expr", "every", "tz", "start", "end"} & form.errors.keys():
            return {}
        given, now = form.cleaned_data, self.now()
        scheduled = _Scheduled(given)
        try:
            fires = fires_to_come(scheduled, now, _anchor(scheduled, form.row, now))
        except InvalidSchedule as error:
            return {"previewed": True, "notices": [str(error)]}
        spec = given["schedule"]
        said = notices(spec.expression) if isinstance(spec, CronSpec) else ()
        return {
            "previewed": True,
            "notices": said,
            "next_fires": fires,
            "tz": given["tz"],
            "is_elsewhere": given["tz"] != "UTC",
        }


class _Scheduled:
    """The schedule of a form that is not saved."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.spec = given["schedule"]
        self.tz: str = given["tz"]
        self.start = given["start"]
        self.end = given["end"]


def _anchor(scheduled: _Scheduled, row: CronSnapshot | None, now: Any) -> Any:
    """Return the phase that saving would give: kept where neither the schedule nor the start changes."""
    if row is None or scheduled.spec.to_json() != row.spec:
        return anchor_at(now, scheduled.start)
    moved = scheduled.start is not None and scheduled.start != row.start
    return anchor_at(now, scheduled.start) if moved else row.anchor


def _edited(row: CronSnapshot, form: CronForm) -> str | None:
    """Change the cron and return what the log says of it; "": nothing to change, None: refused."""
    try:
        changed = _changed(row, fields_of(row, form.changes()))
        if changed and form.cleaned_data["seen"] != fingerprint(row):
            text = gettext("The cron was changed meanwhile; nothing was saved. Open the form again.")
            form.add_error(None, text)
            return None
        if not (changed and crons.edit(row, **form.changes())):
            return ""
    except (HelischedError, TypeError) as error:
        form.blame(error)
        return None
    words = dict.fromkeys(_WORDS.get(name, name) for name in changed)
    return gettext("Edited: %(fields)s.") % {"fields": ", ".join(words)}


def _changed(row: CronSnapshot, fields: dict[str, Any]) -> list[str]:
    return [name for name in sorted(EDITABLE) if not is_same(getattr(row, name), fields[name])]
