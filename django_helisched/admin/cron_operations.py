"""Pause, resume, run now, and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.admin.models import DELETION
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched.admin import reports
from django_helisched.admin.cron_page import archived_text
from django_helisched.admin.operations import Operation
from django_helisched.exceptions import HelischedError
from django_helisched.functions import find
from django_helisched.inspection.rows import damage_of
from django_helisched.models import Cron
from django_helisched.scheduler import crons
from django_helisched.scheduler.declarations import find_declarations
from django_helisched.scheduler.editing import SOURCES

if TYPE_CHECKING:
    from uuid import UUID

    from django_helisched.admin.operations import Text
    from django_helisched.admin.reports import Order

_NAME_LENGTH = Cron._meta.get_field("paused_by").max_length


def _pause_obstacle(cron: Cron) -> Text:
    return _("It is paused already.") if cron.paused_at else ""


def _resume_obstacle(cron: Cron) -> Text:
    return "" if cron.paused_at else _("It is not paused.")


def run_obstacle(cron: Cron) -> Text:
    """Return why no job of the cron can be enqueued, or ""."""
    if cron.archived_at:
        return archived_text(cron)
    if find(cron.fn_path) is None:
        return _("This process does not know its function.")
    return ""


def _pause(order: Order) -> None:
    by = order.request.user.get_username()[:_NAME_LENGTH]
    tried = reports.try_each(order.keys, lambda key: crons.pause(key, by=by, reason=order.reason))
    text = paused_text(order.reason)
    _log_done(order, tried, text)
    done = gettext("Paused %(count)d.") % {"count": len(tried.done)}
    reports.tell(order, tried, done, [gettext("already paused")] * len(tried.left))


def _resume(order: Order) -> None:
    tried = reports.try_each(order.keys, crons.resume)
    _log_done(order, tried, gettext("Resumed."))
    done = gettext("Resumed %(count)d.") % {"count": len(tried.done)}
    reports.tell(order, tried, done, [gettext("not paused")] * len(tried.left))


def _run_now(order: Order) -> None:
    started: dict[UUID, UUID] = {}

    def run(key: UUID) -> bool:
        started[key] = crons.run_now(key).id
        return True

    tried = reports.try_each(order.keys, run)
    rows = reports.rows_by_key(Cron, tried.done)
    texts = {key: gettext("Run now, as job %(job)s.") % {"job": job} for key, job in started.items()}
    reports.log_changes(order, [(rows[key], texts[key]) for key in tried.done if key in rows])
    done = gettext("Enqueued %(count)d, due now.") % {"count": len(tried.done)}
    reports.tell(order, tried, done, ())


def _delete(order: Order) -> None:
    tried = reports.try_each(order.keys, crons.delete)
    rows = reports.rows_by_key(Cron, tried.done)
    text = gettext("Deleted: archived with its history.")
    reports.log_changes(order, [(rows[key], text) for key in tried.done if key in rows], flag=DELETION)
    done = gettext("Deleted %(count)d.") % {"count": len(tried.done)}
    reports.tell(order, tried, done, [gettext("already deleted")] * len(tried.left))


def _delete_obstacle(cron: Cron) -> Text:
    return declared_elsewhere(cron, gettext("remove it there")) or (archived_text(cron) if cron.archived_at else "")


def edit_obstacle(cron: Cron) -> Text:
    """Return why the cron cannot be edited here, or ""."""
    if damage_of(cron):
        return _("Its row is damaged.")
    deleted = gettext("It was deleted. Create it again, and it is the same row.") if cron.archived_at else ""
    return declared_elsewhere(cron, gettext("change it there")) or deleted


def declared_elsewhere(cron: Cron, mend: str) -> str:
    """Return where a cron is declared that is no row of the admin's making, or ""."""
    if cron.source in SOURCES:
        return ""
    place = _origin_of(cron) or (gettext("the code") if cron.source == "code" else cron.source)
    text = gettext("“%(name)s” is declared in %(place)s; %(mend)s. Here you can pause it, or run it now.")
    return text % {"name": cron.name, "place": place, "mend": mend}


def _origin_of(cron: Cron) -> str:
    """Return file and line of the declaration, or "" where this process does not have it."""
    try:
        declared = find_declarations()
    except (HelischedError, ImproperlyConfigured):
        return ""
    for entry in () if declared is None else declared.entries():
        if (entry.source, entry.space, entry.name) == (cron.source, cron.space, cron.name):
            return entry.origin
    return ""


def paused_text(reason: str) -> str:
    """Return what the admin's log says of a pause."""
    return gettext("Paused. Reason: %(reason)s") % {"reason": reason} if reason else gettext("Paused.")


def _log_done(order: Order, tried: reports.Tried, text: str) -> None:
    rows = reports.rows_by_key(Cron, tried.done)
    reports.log_changes(order, [(rows[key], text) for key in tried.done if key in rows])


PAUSE = Operation(
    name="pause",
    label=_("Pause"),
    permission="pause_cron",
    question=_(
        "The cron does not fire until it is resumed, and no deploy changes that. What falls due meanwhile is not "
        "caught up. Jobs that it has already enqueued go on."
    ),
    obstacle=_pause_obstacle,
    perform=_pause,
    asks_reason=True,
)
RESUME = Operation(
    name="resume",
    label=_("Resume"),
    permission="pause_cron",
    question=_(
        "The cron fires again from its next occurrence after now. What fell due during the pause is not made up for."
    ),
    obstacle=_resume_obstacle,
    perform=_resume,
)
RUN_NOW = Operation(
    name="run_now",
    label=_("Run now"),
    permission="run_cron",
    question=_("One more job of the cron is enqueued, due now. The schedule does not move."),
    obstacle=run_obstacle,
    perform=_run_now,
)
DELETE = Operation(
    name="delete",
    label=_("Delete"),
    permission="delete_cron",
    question=_(
        "The cron never fires again. Its history stays, and jobs that it has already enqueued go on. A new cron of "
        "its name is the same row again."
    ),
    obstacle=_delete_obstacle,
    perform=_delete,
    is_grave=True,
)
