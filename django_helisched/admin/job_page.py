"""The sections of one job's page, each from one bounded query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_helisched.admin import cells, states, times
from django_helisched.admin.arguments import Shown, show_call, show_value
from django_helisched.inspection import waiting
from django_helisched.inspection.rows import DAMAGE, damage_of, read_row, read_rows, rows_of
from django_helisched.inspection.surroundings import around
from django_helisched.jobs.job import TERMINAL, State
from django_helisched.jobs.outcome import AttemptOutcome
from django_helisched.models import Attempt, Cron, Job, JobArgs, Progress

if TYPE_CHECKING:
    from django.http import HttpRequest

    from django_helisched.admin.pages import ReadOnlyAdmin

MAX_ATTEMPTS: Final = 50  # the newest; a traceback is up to 32 kB
MAX_CHILDREN: Final = 200  # a fan-out is read as a list, not as a page
MAX_ENTRIES: Final = 50  # of the admin's log; the stock history page has the rest

# Attempts end in more ways than jobs; each borrows the look of a state.
_LOOK_OF_OUTCOME: Final = {
    AttemptOutcome.SUCCESS.value: State.SUCCESS.value,
    AttemptOutcome.SNOOZED.value: states.SCHEDULED,
    AttemptOutcome.CANCELED.value: State.CANCELED.value,
}


class JobPage:
    """What there is to know about one job, for one reader."""

    def __init__(self, page: ReadOnlyAdmin, request: HttpRequest, job: Job) -> None:
        self.page = page
        self.request = request
        self.job = job
        self.now = page.now()

    def sections(self) -> dict[str, Any]:
        """Return the template's context."""
        job = self.job
        view = states.view_of(job, self.now)
        children, more_children = self.children()
        progress = self.progress()
        return {
            "pill": states.pill(view),
            "remark": cells.remark_on(job, view),
            "damage": cells.damage_text(damage_of(job)) if damage_of(job) else "",
            "summary": [(label, value) for label, value in self.summary() if value not in ("", None)],
            "waiting": self.waiting(),
            "progress": progress,
            "progress_at": times.short_instant(progress.updated_at, self.now) if progress is not None else "",
            "may_see_args": self.page.may(self.request, "view_job_args"),
            **self.payload(),
            "attempts": self.attempts(),
            "parent": self.parent(),
            "children": children,
            "more_children": more_children,
            "entries": log_entries(job),
            "history_url": self.page.address("history", job.pk),
        }

    def summary(self) -> list[tuple[str, Any]]:
        """Return labels and values; empty values are left out."""
        job, now = self.job, self.now
        return [
            (_("Function"), format_html("<code>{}</code>", job.fn_path)),
            (_("Id"), format_html("<code>{}</code>", job.pk)),
            (_("Name"), job.name),
            (_("Kind"), _("%(kind)s, at most once") % {"kind": job.kind} if job.at_most_once else job.kind),
            (_("Queue"), job.queue),
            (_("Priority"), str(job.priority)),
            (_("Space"), job.space),
            (_("Source"), job.get_trigger_display()),
            (_("Cron"), self.cron()),
            (_("Created"), times.full_instant(job.created_at, now)),
            (_("Due"), times.full_instant(job.due_at, now)),
            (_("Next run"), times.full_instant(job.next_run_at, now) if job.state == State.PENDING else ""),
            (_("Taken by a worker"), times.full_instant(job.started_at, now) if job.started_at else ""),
            (_("Ended"), times.full_instant(job.completed_at, now) if job.completed_at else ""),
            (_("Expires"), times.full_instant(job.expires_at, now) if job.expires_at else ""),
            (_("Timeout"), times.text_of_duration(job.timeout) if job.timeout else ""),
            (_("Failures"), _("%(count)s of %(budget)s") % {"count": job.attempts, "budget": job.max_failures}),
            (_("Workers lost"), str(job.losses) if job.losses else ""),
            (_("Worker"), job.lease_holder),
            (_("Lease until"), times.full_instant(job.lease_expires_at, now) if job.lease_expires_at else ""),
            (_("Asked to stop"), times.full_instant(job.cancel_requested_at, now) if job.cancel_requested_at else ""),
            (_("Idempotency key"), job.idempotency_key),
            (_("On complete"), format_html("<code>{}</code>", job.on_complete) if job.on_complete else ""),
            (_("App version"), job.app_version),
        ]

    def cron(self) -> Any:
        """Return a link to the cron that made the job."""
        if self.job.cron_id is None:
            return ""
        cron = read_row(Cron, self.job.cron_id)
        if cron is None:
            return _("a deleted cron")
        return self.page.link(Cron, cron.pk, str(cron))

    def waiting(self) -> list[str]:
        """Return why a pending job does not run yet."""
        return [reason.text for reason in waiting.reasons(self.job, around(self.job))]

    def progress(self) -> Any:
        """Return how far a job says it has come, or had come when it ended; None of one that waits to run."""
        if self.job.state == State.PENDING:
            return None
        found = read_row(Progress, self.job.pk)
        # Progress of an earlier claim says nothing about this one.
        return found if found is not None and found.fence == self.job.fence else None

    def payload(self) -> dict[str, Any]:
        """Return the arguments, the context and the result, for readers who may see them."""
        if not self.page.may(self.request, "view_job_args"):
            return {"arguments": [], "extras": [], "payload_damage": ""}
        stored = read_row(JobArgs, self.job.pk) if self.job.has_args else None
        arguments = [] if stored is None else show_call(self.job.fn_path, stored.args, stored.kwargs)
        extras = []
        if stored is not None and stored.context is not None:
            extras.append(show_value(_("Context of on_complete"), stored.context))
        damage = damage_of(stored) if stored is not None else ()
        return {
            "arguments": arguments,
            "extras": [*extras, *self.result()],
            "payload_damage": cells.damage_text(damage) if damage else "",
        }

    def result(self) -> list[Shown]:
        """Return what the last successful attempt returned."""
        if self.job.state != State.SUCCESS:
            return []
        ended = rows_of(Attempt).filter(job_id=self.job.pk, outcome=AttemptOutcome.SUCCESS.value)
        try:
            results = list(ended.order_by("-number").values_list("result", flat=True)[:1])
        except DAMAGE:
            return [Shown(_("Result"), _("The stored result cannot be read."))]
        return [show_value(_("Result"), results[0])] if results else []

    def attempts(self) -> list[dict[str, Any]]:
        """Return the newest attempts, newest first."""
        rows = rows_of(Attempt).filter(job_id=self.job.pk).defer("result").order_by("-number")[:MAX_ATTEMPTS]
        return [self._attempt(attempt) for attempt in read_rows(rows)]

    def _attempt(self, attempt: Attempt) -> dict[str, Any]:
        look = _LOOK_OF_OUTCOME.get(attempt.outcome, State.FAILED.value)
        return {
            "number": attempt.number,
            "pill": states.pill(look, attempt.get_outcome_display()),
            "started": times.short_instant(attempt.started_at or attempt.ended_at, self.now),
            "ran": times.between(attempt.started_at, attempt.ended_at),
            "worker": attempt.worker_id,
            "error_class": attempt.error_class,
            "error": attempt.error,
            "traceback": attempt.traceback,
            "log": attempt.log,
        }

    def parent(self) -> dict[str, Any] | None:
        """Return the job that enqueued this one, or what is left of it."""
        if self.job.parent_id is None:
            return None
        found = read_row(Job, self.job.parent_id)
        return {"id": self.job.parent_id} if found is None else self._relative(found)

    def children(self) -> tuple[list[dict[str, Any]], str]:
        """Return the first jobs that this one enqueued, and where the rest is listed."""
        rows = rows_of(Job).filter(parent_id=self.job.pk).order_by("pk")[: MAX_CHILDREN + 1]
        found = [self._relative(child) for child in read_rows(rows)]
        query = {"q": f"parent:{self.job.pk}"}
        more = self.page.link_to_list(Job, query, _("All children")) if len(found) > MAX_CHILDREN else ""
        return found[:MAX_CHILDREN], more

    def _relative(self, job: Job) -> dict[str, Any]:
        return {
            "id": job.pk,
            "link": self.page.link(Job, job.pk, cells.short_name(job.fn_path)),
            "pill": states.pill(states.view_of(job, self.now)),
            "name": job.name,
            "when": times.short_instant(job.completed_at if job.state in TERMINAL else job.next_run_at, self.now),
        }


def log_entries(row: Any) -> list[LogEntry]:
    """Return the newest entries of the admin's log about ``row``."""
    kind = ContentType.objects.get_for_model(row)
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(row.pk))
    return list(entries.select_related("user").order_by("-action_time")[:MAX_ENTRIES])
