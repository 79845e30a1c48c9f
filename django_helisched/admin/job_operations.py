"""Requeue, cancel and force stop, with what the rows say afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_helisched import scheduler
from django_helisched.admin import reports
from django_helisched.admin.operations import Operation
from django_helisched.jobs.job import TERMINAL, State
from django_helisched.models import Job

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django_helisched.admin.operations import Text
    from django_helisched.admin.reports import Order


def _requeue_obstacle(job: Job) -> Text:
    if job.state == State.IN_PROGRESS:
        return _("It is running. Cancel it first.")
    return "" if job.state in TERMINAL else _("It is pending already.")


def _cancel_obstacle(job: Job) -> Text:
    if job.state in TERMINAL:
        return _("It has ended.")
    return _("It was asked to stop already.") if job.cancel_requested_at else ""


def _force_obstacle(job: Job) -> Text:
    return "" if job.state == State.IN_PROGRESS else _("Only a running job can be stopped by force.")


def _requeue(order: Order) -> None:
    tried = reports.try_each(order.keys, scheduler.requeue)
    rows = reports.rows_by_key(Job, [*tried.done, *tried.left])
    text = gettext("Requeued.")
    reports.log_changes(order, [(rows[key], text) for key in tried.done if key in rows])
    done = ngettext("Requeued %(count)d.", "Requeued %(count)d.", len(tried.done)) % {"count": len(tried.done)}
    reports.tell(order, tried, done, [_why_not_requeued(rows.get(key)) for key in tried.left])


def _why_not_requeued(job: Job | None) -> str:
    if job is None:
        return gettext("no longer there")
    if job.state == State.IN_PROGRESS:
        return gettext("already running")
    if job.state == State.PENDING:
        return gettext("already pending")
    return gettext("with a key that another job has taken") if job.idempotency_key else gettext("changed meanwhile")


def _cancel(order: Order) -> None:
    tried = reports.try_each(order.keys, scheduler.cancel)
    rows = reports.rows_by_key(Job, [*tried.done, *tried.left])
    reports.log_changes(order, [(rows[key], _cancel_text(rows[key])) for key in tried.done if key in rows])
    _tell_canceled(order, tried, rows)


def _force_stop(order: Order) -> None:
    tried = reports.try_each(order.keys, lambda key: scheduler.cancel(key, force=True))
    rows = reports.rows_by_key(Job, [*tried.done, *tried.left])
    text = gettext("Stopped by force.")
    reports.log_changes(order, [(rows[key], text) for key in tried.done if key in rows])
    _tell_canceled(order, tried, rows)


def _cancel_text(job: Job) -> str:
    return gettext("Asked to stop.") if job.state == State.IN_PROGRESS else gettext("Canceled.")


def _tell_canceled(order: Order, tried: reports.Tried, rows: Mapping[UUID, Any]) -> None:
    asked = sum(key in rows and rows[key].state == State.IN_PROGRESS for key in tried.done)
    done = gettext("Canceled %(count)d.") % {"count": len(tried.done) - asked}
    if asked:
        done += " " + ngettext(
            "Asked %(count)d running job to stop.", "Asked %(count)d running jobs to stop.", asked
        ) % {"count": asked}
    reports.tell(order, tried, done, [_why_not_canceled(rows.get(key)) for key in tried.left])


def _why_not_canceled(job: Job | None) -> str:
    if job is None:
        return gettext("no longer there")
    if job.state in TERMINAL:
        return gettext("already ended (%(state)s)") % {"state": job.get_state_display()}
    return gettext("changed meanwhile")


REQUEUE = Operation(
    name="requeue",
    label=_("Requeue"),
    permission="requeue_job",
    question=_(
        "The job becomes due now and runs again with a full retry budget; its history stays. "
        "An action that already talked to the world does so once more."
    ),
    obstacle=_requeue_obstacle,
    perform=_requeue,
)
CANCEL = Operation(
    name="cancel",
    label=_("Cancel"),
    permission="cancel_job",
    question=_(
        "A pending job ends canceled at once, a running one is asked to stop and told so within a third of the lease. "
        "The jobs it enqueued are canceled with it."
    ),
    obstacle=_cancel_obstacle,
    perform=_cancel,
)
FORCE_STOP = Operation(
    name="force_stop",
    label=_("Force stop"),
    permission="cancel_job",
    question=_(
        "The job ends canceled now and its worker loses the claim: whatever the body still does is not recorded. "
        "The body itself goes on until it returns, and an action may leave its work half done."
    ),
    obstacle=_force_obstacle,
    perform=_force_stop,
    is_grave=True,
)
