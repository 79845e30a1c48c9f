"""The processes that run jobs, as they last reported themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched import conf
from django_helisched.admin import cells, times
from django_helisched.admin.pages import ReadOnlyAdmin
from django_helisched.functions.advice import served_words
from django_helisched.inspection import fleet

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from django_helisched.models import Worker


class WorkerAdmin(ReadOnlyAdmin):
    """Workers, the one heard of last first."""

    list_display = ["worker", "status", "last_heard", "load", "serves", "release"]
    list_display_links = ["worker"]
    ordering = ["-last_seen", "id"]

    def page_of(self, request: HttpRequest, row: Worker) -> dict[str, Any]:
        """Return what the worker reported."""
        now = self.now()
        summary = [
            (gettext("Id"), format_html("<code>{}</code>", row.id)),
            (gettext("Status"), self.status(row)),
            (gettext("Host"), row.host),
            (gettext("Process"), str(row.pid)),
            (gettext("Started"), times.full_instant(row.started_at, now)),
            (gettext("Last seen"), times.full_instant(row.last_seen, now)),
            (gettext("Jobs"), self.load(row)),
            (gettext("Queues"), self.serves(row)),
            (gettext("Version"), row.version),
            (gettext("Time zone data"), row.tzdata_version),
        ]
        return {
            "summary": [(label, value) for label, value in summary if value],
            "lists": [
                (gettext("Functions it knows"), fleet.texts(row.functions)),
                (gettext("Crons it declares"), fleet.texts(row.declarations)),
            ],
        }

    @admin.display(description=_("worker"))
    def worker(self, worker: Worker) -> SafeString:
        """Return the id, the host and the process."""
        return format_html(
            '<span class="hs-fn">{}</span><span class="hs-second">{} · {}</span>', worker.id, worker.host, worker.pid
        )

    @admin.display(description=_("status"))
    def status(self, worker: Worker) -> SafeString:
        """Return its own word, and "stale" where it has not been heard of for a whole lease."""
        own = cells.flag(worker.state)
        if worker.state != "stopped" and is_stale(worker, self.now()):
            return format_html("{} {}", own, cells.flag(gettext("stale"), is_bad=True))
        return own

    @admin.display(description=_("last seen"))
    def last_heard(self, worker: Worker) -> SafeString | str:
        """Return when it reported last."""
        return times.short_instant(worker.last_seen, self.now())

    @admin.display(description=_("jobs"))
    def load(self, worker: Worker) -> str:
        """Return how many of its seats are taken."""
        return gettext("%(taken)s of %(seats)s seats") % {"taken": worker.in_flight, "seats": worker.seats}

    @admin.display(description=_("queues"))
    def serves(self, worker: Worker) -> str:
        """Return the queues it serves."""
        return ", ".join(served_words(fleet.texts(worker.queues))) or gettext("every queue")

    @admin.display(description=_("version"))
    def release(self, worker: Worker) -> SafeString:
        """Return the package's version and that of its time zone data."""
        return format_html("{}{}", worker.version, cells.second_line(worker.tzdata_version))


def is_stale(worker: Worker, now: datetime) -> bool:
    """Tell whether the worker missed three heartbeats, which is a whole lease."""
    last_seen: datetime | None = worker.last_seen  # None in a damaged row
    return last_seen is None or now - last_seen > conf.get_settings().lease
