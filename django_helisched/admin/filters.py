"""The filters beside the list of jobs. Their choices never come from reading the jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.views.main import SEARCH_VAR
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched import wiring
from django_helisched.admin import states
from django_helisched.admin.search import is_pinpoint
from django_helisched.inspection import queue_names
from django_helisched.inspection.rows import rows_of
from django_helisched.jobs.job import Trigger
from django_helisched.models import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from django_helisched.models import Job

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StateFilter(admin.SimpleListFilter):
    """One state, or one of its views."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the views in the order of a job's life."""
        return list(states.VIEWS.items())

    def value(self) -> str | None:
        """Return the view asked for, another system's words translated."""
        given = super().value()
        return None if not given else states.view_named(given.lower()) or given

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job] | None:
        """Narrow the jobs to the view; an unknown word gives a message and no jobs."""
        view = self.value()
        if view is None:
            return None
        if view not in states.VIEWS:
            return _refused(request, queryset, "state", view)
        return queryset.filter(states.condition_of(view, wiring.job_store().now()))


class QueueFilter(admin.SimpleListFilter):
    """One queue, of those that functions are declared for, that have waiting jobs or a pause switch."""

    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the queues that are known without reading the jobs, and the one that is asked for."""
        asked = [name for name in request.GET.getlist(self.parameter_name) if name and "\x00" not in name][:1]
        stored = rows_of(Queue).order_by("pk").values_list("pk", flat=True)[: queue_names.MAX_QUEUES]
        return [(name, name) for name in queue_names.first(asked, queue_names.known(), stored)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job] | None:
        """Narrow the jobs to the queue, known or not."""
        queue = self.value()
        if not queue:
            return None
        if "\x00" in queue:
            return _refused(request, queryset, "queue", queue)
        return queryset.filter(queue=queue)


class TriggerFilter(admin.SimpleListFilter):
    """What made the job."""

    title = _("source")
    parameter_name = "trigger"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the triggers there are."""
        return [(trigger.value, trigger.value.replace("_", " ")) for trigger in Trigger]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job] | None:
        """Narrow the jobs to the trigger."""
        trigger = self.value()
        if not trigger:
            return None
        if trigger not in set(Trigger):
            return _refused(request, queryset, "trigger", trigger)
        return queryset.filter(trigger=trigger)


class CreatedFilter(admin.SimpleListFilter):
    """How far back the list reaches: a range of ids, which grow with time.

    The default is a week, and everything where the jobs are few anyway: those
    that are not finished, and those that the search names one by one.
    """

    title = _("created")
    parameter_name = "created"
    everything: Final = "all"
    spans: Final[dict[str, timedelta]] = {
        "1h": timedelta(hours=1),
        "24h": timedelta(hours=24),
        "7d": timedelta(days=7),
        "30d": timedelta(days=30),
    }

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        super().__init__(request, *args)
        view = states.view_named(request.GET.get(StateFilter.parameter_name, "").lower())
        reaches_all = view in states.LIVE or is_pinpoint(request.GET.get(SEARCH_VAR, ""))
        self._default = self.everything if reaches_all else "7d"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the spans, longest last."""
        return [
            ("1h", _("the last hour")),
            ("24h", _("the last 24 hours")),
            ("7d", _("the last 7 days")),
            ("30d", _("the last 30 days")),
            (self.everything, _("everything")),
        ]

    def value(self) -> str:
        """Return the span asked for, or the default."""
        return super().value() or self._default

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Give the spans without the stock "All", which would mean the default here."""
        choices = super().choices(changelist)
        next(choices)
        return choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job] | None:
        """Narrow the jobs to the ids made since the span began."""
        asked = self.value()
        if asked == self.everything:
            return None
        if asked not in self.spans:
            return _refused(request, queryset, "created", asked)
        return queryset.filter(pk__gte=first_id_at(wiring.job_store().now() - self.spans[asked]))


def first_id_at(moment: datetime) -> UUID:
    """Return the least UUIDv7 of that millisecond."""
    milliseconds = max(0, (moment - _EPOCH) // timedelta(milliseconds=1))
    # A valid version 7: MariaDB orders those, and only those, by their bytes.
    return UUID(int=milliseconds << 80 | 0x7 << 76 | 0x2 << 62)


def _refused(request: HttpRequest, queryset: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
    shown = value.replace("\x00", "\\x00")[:80]
    text = gettext("The filter %(name)s has no choice “%(value)s”.") % {"name": name, "value": shown}
    messages.error(request, text)
    return queryset.none()
