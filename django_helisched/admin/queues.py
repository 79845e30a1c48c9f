"""The queues that have a pause switch, and the switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched import wiring
from django_helisched.admin import cells, reports, times
from django_helisched.admin.cron_operations import paused_text
from django_helisched.admin.operations import OperableAdmin, Operation
from django_helisched.admin.pages import READING
from django_helisched.admin.reports import Order
from django_helisched.inspection import queue_names, waiting
from django_helisched.inspection.rows import rows_of
from django_helisched.models import Job, Queue

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    from django_helisched.admin.operations import Text

_MAX_NAMED = 20  # queues in one sentence
_NAME_LENGTH = Queue._meta.get_field("paused_by").max_length


def _resume_obstacle(queue: Queue) -> Text:
    return "" if queue.paused_at else _("It is not paused.")


def _pause_obstacle(queue: Queue) -> Text:
    return _("It is paused already.") if queue.paused_at else ""


def _pause(order: Order) -> None:
    _pause_and_tell(order, gettext("Paused %(count)d."))


def _pause_and_tell(order: Order, done: str) -> None:
    by = order.request.user.get_username()[:_NAME_LENGTH]

    def pause(name: str) -> bool:
        wiring.job_store().pause_queue(name, by=by, reason=order.reason)
        return True

    tried = reports.try_each(order.keys, pause)
    text = paused_text(order.reason)
    _log(order, tried, text)
    counted = {"count": len(tried.done), "name": ", ".join(order.keys)}
    reports.tell(order, tried, done % counted if tried.done else "", ())


def _resume(order: Order) -> None:
    tried = reports.try_each(order.keys, wiring.job_store().resume_queue)
    _log(order, tried, gettext("Resumed."))
    done = gettext("Resumed %(count)d.") % {"count": len(tried.done)}
    reports.tell(order, tried, done, [gettext("not paused")] * len(tried.left))


def _log(order: Order, tried: reports.Tried, text: str) -> None:
    rows = reports.rows_by_key(Queue, tried.done)
    reports.log_changes(order, [(rows.get(name, Queue(name=name)), text) for name in tried.done])


def _pause_named(order: Order, name: str) -> None:
    """Pause one queue, and say so where that stops nothing: the name may be a slip."""
    _pause_and_tell(order, gettext('Paused "%(name)s".'))
    if not queue_names.is_used(name):
        text = gettext(
            "No waiting or running job, no cron and no registered function uses this queue (they use: %(known)s)."
        )
        messages.warning(order.request, text % {"known": ", ".join(queue_names.known()[:_MAX_NAMED])})


PAUSE = Operation(
    name="pause",
    label=_("Pause"),
    permission="change_queue",
    question=_("No job of this queue is started until it is resumed. Jobs that run already go on."),
    obstacle=_pause_obstacle,
    perform=_pause,
    asks_reason=True,
)
RESUME = Operation(
    name="resume",
    label=_("Resume"),
    permission="change_queue",
    question=_("Jobs of this queue are started again, those that waited first."),
    obstacle=_resume_obstacle,
    perform=_resume,
)


class PauseForm(forms.Form):
    """Which queue is to pause, and why."""

    name = forms.CharField(label=_("Queue"), max_length=100, widget=forms.TextInput({"list": "hs-queues"}))
    reason = forms.CharField(label=_("Reason"), required=False, max_length=300, widget=forms.TextInput({"size": 60}))


class QueueAdmin(OperableAdmin):
    """Queues that were ever paused; any other one is running and needs no row."""

    operations = (PAUSE, RESUME)
    list_display = ["queue", "status", "since", "reason_given"]
    list_display_links = ["queue"]
    ordering = ["name"]

    def get_urls(self) -> list[URLPattern]:
        """Add the page that pauses a queue by its name."""
        view = self.admin_site.admin_view(self.pause_view)
        return [path("pause/", view, name="helisched_queue_pause_named"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, with the way to pause a queue that has no row yet."""
        url = self.address("pause_named") if self.may(request, PAUSE.permission) else ""
        context = {"pause_url": url, "others": self.others()}
        return super().changelist_view(request, {**(extra_context or {}), **context})

    def others(self) -> list[SafeString]:
        """Return the known queues that were never paused, as links to their jobs."""
        known = queue_names.known()
        switched = set(rows_of(Queue).filter(pk__in=known).values_list("pk", flat=True))
        return [self.link_to_list(Job, {"queue": name}, name) for name in known if name not in switched]

    def pause_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for the queue on GET; pause it on POST."""
        if request.method not in {*READING, "POST"}:
            return HttpResponseNotAllowed([*READING, "POST"])
        if not (self.has_view_permission(request) and self.may(request, PAUSE.permission)):
            raise PermissionDenied
        form = PauseForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            name = form.cleaned_data["name"]
            _pause_named(Order(request, [name], form.cleaned_data["reason"]), name)
            return HttpResponseRedirect(self.address("changelist"))
        known = queue_names.known()
        context = {"operation": PAUSE, "form": form, "known": known, "back": self.address("changelist")}
        title = gettext("Pause a queue")
        crumbs = [self.list_crumb(request), (title, None)]
        return self.rendered(request, "helisched/confirm.html", title, crumbs, context)

    def page_of(self, request: HttpRequest, row: Queue) -> dict[str, Any]:
        """Return the switch's position."""
        now = self.now()
        summary = [
            (gettext("Queue"), row.name),
            (gettext("Status"), self.status(row)),
            (gettext("Paused"), times.full_instant(row.paused_at, now) if row.paused_at else ""),
            (gettext("By"), row.paused_by),
            (gettext("Reason"), row.reason),
            (gettext("Until"), times.full_instant(row.until, now) if row.until else ""),
            (gettext("Jobs"), self.jobs_link(row)),
        ]
        return {
            "summary": [(label, value) for label, value in summary if value],
            "buttons": self.buttons_of(request, row),
        }

    def jobs_link(self, queue: Queue) -> SafeString:
        """Return a link to the queue's jobs."""
        return self.link_to_list(Job, {"queue": queue.name}, gettext("jobs of this queue"))

    @admin.display(description=_("queue"))
    def queue(self, queue: Queue) -> str:
        """Return the name."""
        return str(queue.name)

    @admin.display(description=_("status"))
    def status(self, queue: Queue) -> SafeString:
        """Return whether jobs are started."""
        return cells.flag(gettext("paused") if waiting.is_paused(queue, self.now()) else gettext("running"))

    @admin.display(description=_("paused"))
    def since(self, queue: Queue) -> SafeString | str:
        """Return when it was paused."""
        return times.short_instant(queue.paused_at, self.now())

    @admin.display(description=_("reason"))
    def reason_given(self, queue: Queue) -> str:
        """Return who paused it, and why."""
        return ": ".join(part for part in (queue.paused_by, queue.reason) if part)
