"""The list of jobs and the page of one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched.admin import cells, states, times
from django_helisched.admin.filters import CreatedFilter, QueueFilter, StateFilter, TriggerFilter
from django_helisched.admin.job_operations import CANCEL, FORCE_STOP, REQUEUE
from django_helisched.admin.job_page import JobPage
from django_helisched.admin.operations import OperableAdmin
from django_helisched.admin.search import NotUnderstood, parse_search
from django_helisched.inspection.rows import damage_of, read_row
from django_helisched.jobs.job import State
from django_helisched.models import Cron

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from django_helisched.models import Job

_MAX_ERROR = 100  # characters of an error in the list; the title and the page have all of it


class JobAdmin(OperableAdmin):
    """Jobs, newest first."""

    page_template = "helisched/job.html"
    operations = (REQUEUE, CANCEL, FORCE_STOP)
    actions = ["requeue_selected", "cancel_selected"]
    list_display = ["job", "pill", "queue_and_priority", "source", "when", "problem"]
    list_display_links = ["job"]
    list_filter = [StateFilter, QueueFilter, TriggerFilter, CreatedFilter]
    filter_parameters: ClassVar[frozenset[str]] = frozenset({"state", "queue", "trigger", "created"})
    ordering = ["-id"]
    sortable_by: ClassVar[Any] = ("job",)
    # Shows the box; what is typed goes to parse_search.
    search_fields = ["=id"]

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may requeue; Django asks it for the action."""
        return self.may(request, REQUEUE.permission)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may cancel; Django asks it for the action."""
        return self.may(request, CANCEL.permission)

    @admin.action(permissions=["requeue"], description=_("Requeue the selected jobs"))
    def requeue_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Requeue what is finished of the selection."""
        self.perform_on_selection(request, queryset, REQUEUE)

    @admin.action(permissions=["cancel"], description=_("Cancel the selected jobs"))
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        """Cancel what is not finished of the selection."""
        self.perform_on_selection(request, queryset, CANCEL)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Return the jobs with the names of their crons; what else a cron holds may be damaged."""
        columns = [field.name for field in self.opts.concrete_fields]
        return super().get_queryset(request).select_related("cron").only(*columns, "cron__name", "cron__space")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """Narrow the jobs by exact qualifiers; a word that is none gives a message and no jobs."""
        try:
            search = parse_search(search_term, self.now())
        except NotUnderstood as error:
            messages.error(request, str(error))
            return queryset.none(), False
        return queryset.filter(search.condition), False

    def heading_of(self, row: Job) -> str:
        """Return the function's short name and the job's own name."""
        return " · ".join(part for part in (cells.short_name(row.fn_path), row.name) if part)

    def page_of(self, request: HttpRequest, row: Job) -> dict[str, Any]:
        """Return the sections of the job's page."""
        page = JobPage(self, request, row)
        return {**page.sections(), "buttons": self.buttons_of(request, row)}

    @admin.display(description=_("job"), ordering="id")
    def job(self, job: Job) -> SafeString:
        """Return the function's short name, the job's own name and its id."""
        name = format_html(" · {}", Truncator(job.name).chars(60)) if job.name else ""
        return format_html(
            '<span class="hs-fn" title="{}">{}</span>{}<span class="hs-id" title="{}">{}</span>',
            job.fn_path,
            cells.short_name(job.fn_path),
            name,
            job.pk,
            cells.short_id(job.pk),
        )

    @admin.display(description=_("state"))
    def pill(self, job: Job) -> SafeString:
        """Return the state with what it waits for, or why it failed."""
        now = self.now()
        view = states.view_of(job, now)
        return format_html("{}{}", states.pill(view), cells.second_line(cells.remark_on(job, view)))

    @admin.display(description=_("queue"))
    def queue_and_priority(self, job: Job) -> SafeString:
        """Return the queue as a link to its jobs, and the priority unless it is zero."""
        url = f"?{urlencode({'queue': job.queue})}"
        priority = format_html(" · {}", job.priority) if job.priority else ""
        return format_html('<a class="hs-plain" href="{}">{}</a>{}', url, job.queue, priority)

    @admin.display(description=_("source"))
    def source(self, job: Job) -> SafeString | str:
        """Return the cron or the parent that made the job, or how it was made."""
        trigger = job.get_trigger_display()
        if job.cron_id is not None:
            # A page with a damaged row is read row by row, without the crons.
            known = job._meta.get_field("cron").is_cached(job)
            cron = job.cron if known else read_row(Cron, job.cron_id)
            name = gettext("a deleted cron") if cron is None else cron.name
            return format_html("{}{}", self.link(Cron, job.cron_id, name), cells.second_line(trigger))
        if job.parent_id is not None:
            link = self.link(self.model, job.parent_id, gettext("parent"))
            return format_html('{}<span class="hs-id">{}</span>', link, cells.short_id(job.parent_id))
        return trigger

    @admin.display(description=_("when"))
    def when(self, job: Job) -> SafeString | str:
        """Return since when it runs, until when it waits, or when it ended and how long that took."""
        now = self.now()
        if job.state == State.PENDING:
            waiting = gettext("waiting for %(time)s") % {"time": times.between(job.next_run_at, now)}
            return times.short_instant(job.next_run_at, now, waiting if is_due(job, now) else "")
        if job.state == State.IN_PROGRESS:
            running = gettext("running for %(time)s") % {"time": times.between(job.started_at, now)}
            since = times.short_instant(job.started_at, now, running)
            return format_html("{}{}", since, cells.second_line(job.lease_holder))
        # From the claim on, so longer than what the body ran: the page lists that for each attempt.
        took = cells.second_line(gettext("took %(time)s") % {"time": times.between(job.started_at, job.completed_at)})
        return format_html("{}{}", times.short_instant(job.completed_at, now), took if job.started_at else "")

    @admin.display(description=_("error"))
    def problem(self, job: Job) -> SafeString | str:
        """Return the beginning of the last error, or what of the row cannot be read."""
        damage = damage_of(job)
        if damage:
            return format_html('<span class="hs-error">{}</span>', cells.damage_text(damage))
        if not job.last_error:
            return ""
        cut = Truncator(job.last_error).chars(_MAX_ERROR)
        return format_html('<span class="hs-error" title="{}">{}</span>', job.last_error, cut)


def is_due(job: Job, now: datetime) -> bool:
    """Tell whether a pending job waits for a free seat, and no longer for its time."""
    next_run_at: datetime | None = job.next_run_at  # None in a damaged row
    return next_run_at is not None and next_run_at <= now
