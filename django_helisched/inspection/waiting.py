"""Why nothing happens: what stands between a pending job and its run, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_helisched import functions
from django_helisched.functions.advice import queue_advice
from django_helisched.inspection.distances import NOTHING, relative, rough
from django_helisched.jobs.job import Hold, State
from django_helisched.stores.base import QueueFilter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django_helisched.models import Job, Limit, Queue, Worker
    from django_helisched.stores.base import WorkerReport

MAX_AHEAD = 1000  # jobs before a job that are counted; more is "more than"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: a word that stays the same, for programs, and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a pending job's wait depends on beside its own row."""

    now: datetime
    switch: Queue | None = None  # the row of its queue, if it has one
    workers: Sequence[WorkerReport] | None = None  # the live ones, None where they cannot be read
    earlier: tuple[UUID, str] | None = None  # the job of its cron that is out, and its state
    limit: Limit | None = None
    out: int = 0  # jobs of its limit key that run, or are let out and not claimed yet
    holders: Sequence[UUID] = ()  # the running jobs of its limit key, the first of them
    ahead: int = 0  # jobs of its queue that a claim takes first, counted to MAX_AHEAD + 1


def silence(newest: Worker | None, now: datetime) -> str:
    """Return what to say where no scheduler reports; ``newest`` is the one heard of last, if any."""
    if newest is None:
        said = _("No scheduler has ever reported.")
    else:
        last_seen: datetime | None = newest.last_seen  # None in a damaged row
        since = NOTHING if last_seen is None else rough(abs(now - last_seen))
        stopped = newest.state == "stopped"
        said = _("The last scheduler stopped %s ago.") if stopped else _("No scheduler has reported for %s.")
        said %= since
    return " ".join([said, _("Nothing will run. In another terminal: python manage.py runscheduler")])


def is_paused(queue: Queue, now: datetime) -> bool:
    """Tell whether claims stay away from the queue."""
    return queue.paused_at is not None and (queue.until is None or queue.until > now)


def reasons(job: Job, around: Around) -> list[Reason]:
    """Return why a pending job does not run yet, the hardest reason first; nothing for another job."""
    if job.state != State.PENDING:
        return []
    now = around.now
    found = [
        _expired(job, now),
        _held(job, around),
        _paused(around.switch, now),
        _unserved(job.queue, around.workers),
        _not_known(job, around.workers),
        _later(job, now),
    ]
    standing = [reason for reason in found if reason is not None] or [_no_seat(job, around)]
    expiry = _expiry(job, now)
    return standing if expiry is None else [*standing, expiry]


def _held(job: Job, around: Around) -> Reason | None:
    if job.hold == Hold.UNKNOWN_FUNCTION:
        return Reason("unknown_function", _unknown_function(job, around.workers or ()))
    if job.hold == Hold.OVERLAP:
        return Reason("overlap", _overlap(around))
    if job.hold == Hold.LIMIT:
        return Reason("limit", _limit(job, around))
    return None


def _unknown_function(job: Job, workers: Sequence[WorkerReport]) -> str:
    knowing = [worker for worker in workers if _names_of(job) & set(worker.functions)]
    if knowing:
        text = _(
            "Held: a scheduler without the function gave it back. %(worker)s has it: it is let go at its next sweep."
        )
        return text % {"worker": knowing[0].id}
    text = _(
        'Job names %(path)s, which no running code has. It was left waiting ("unknown function"). '
        'Keep an alias: @%(kind)s(aliases=["%(path)s"]), or cancel it.'
    )
    return text % {"path": job.fn_path, "kind": job.kind}


def _overlap(around: Around) -> str:
    if around.earlier is None:
        return _("Held: an earlier job of its cron has not ended.")
    job_id, state = around.earlier
    text = _("Held: an earlier job of its cron has not ended (%(job)s, %(state)s).")
    return text % {"job": job_id, "state": state}


def _limit(job: Job, around: Around) -> str:
    if around.limit is None:
        return _('Held: the limit "%(key)s" is full.') % {"key": job.limit_key}
    facts = {"key": job.limit_key, "used": around.out, "capacity": around.limit.capacity}
    if around.out < around.limit.capacity:
        return _('Due: the limit "%(key)s" has a free slot (%(used)s of %(capacity)s), taken at the next look.') % facts
    text = _('Held: the limit "%(key)s" is full, %(used)s of %(capacity)s are out.') % facts
    if not around.holders:
        return text
    return " ".join([text, _("Running: %(jobs)s.") % {"jobs": ", ".join(str(job_id) for job_id in around.holders)}])


def _paused(switch: Queue | None, now: datetime) -> Reason | None:
    if switch is None or not is_paused(switch, now):
        return None
    by = _("by %(name)s") % {"name": switch.paused_by} if switch.paused_by else ""
    since = relative(switch.paused_at, now) if switch.paused_at else ""
    text = " ".join(part for part in (_("Held: queue paused"), by, since) if part)
    if switch.until:
        text = _("%(text)s, until it resumes %(when)s") % {"text": text, "when": relative(switch.until, now)}
    return Reason("queue_paused", f"{text}: {switch.reason}" if switch.reason else f"{text}.")


def _unserved(queue: str, workers: Sequence[WorkerReport] | None) -> Reason | None:
    if workers is None:
        return None
    if not workers:
        return Reason("no_scheduler", _("Nobody will run it: no scheduler is running."))
    advice = queue_advice(queue, workers)
    if advice:
        return Reason("queue_unserved", advice)
    serving = _serving(queue, workers)
    if all(worker.state == "draining" for worker in serving):
        return Reason("draining", _("Every scheduler that serves its queue is stopping and takes nothing more."))
    if not any(worker.seats for worker in serving if worker.state != "draining"):
        return Reason("no_seats", _("The schedulers that serve its queue have no seats: they only fire crons."))
    return None


def _not_known(job: Job, workers: Sequence[WorkerReport] | None) -> Reason | None:
    serving = _serving(job.queue, workers or ())
    # Who lists nothing has a damaged row, which says nothing.
    if job.hold or not serving or any(not worker.functions for worker in serving):
        return None
    if any(_names_of(job) & set(worker.functions) for worker in serving):
        return None
    text = _("No running scheduler that serves its queue has %(path)s: whoever takes it holds it back.")
    return Reason("function_unknown", text % {"path": job.fn_path})


def _names_of(job: Job) -> set[str]:
    """Return the paths under which a worker may list the function: it leaves aliases out."""
    found = functions.find(job.fn_path)
    return {job.fn_path} if found is None else {job.fn_path, found.path}


def _later(job: Job, now: datetime) -> Reason | None:
    next_run_at: datetime | None = job.next_run_at  # None in a damaged row
    if next_run_at is None or next_run_at <= now:
        return None
    when = {"when": relative(next_run_at, now)}
    if job.attempts or job.losses:
        text = _("Runs again %(when)s") % when
        return Reason("retry", f"{text} ({_after(job)}).")
    if job.attempt_count:
        return Reason("snoozed", _("Runs again %(when)s, as it asked.") % when)
    return Reason("scheduled", _("Runs %(when)s.") % when)


def _after(job: Job) -> str:
    parts = []
    if job.attempts:
        counts = {"failures": job.attempts, "budget": job.max_failures}
        parts.append(_("%(failures)s of %(budget)s failures") % counts)
    if job.losses:
        text = ngettext("lost with its worker once", "lost with its worker %(count)s times", job.losses)
        parts.append(text % {"count": job.losses})
    return ", ".join(parts) + (f": {job.last_error}" if job.last_error else "")


def _expired(job: Job, now: datetime) -> Reason | None:
    if job.expires_at is None or job.expires_at >= now:
        return None
    text = _("It was not to start after %(when)s: the next sweep of a scheduler fails it as expired.")
    return Reason("expired", text % {"when": f"{job.expires_at:%Y-%m-%d %H:%M:%S} UTC"})


def _expiry(job: Job, now: datetime) -> Reason | None:
    if job.expires_at is None or job.expires_at < now:
        return None
    text = _("It expires %(when)s: if it has not started by then, it fails.")
    return Reason("expires", text % {"when": relative(job.expires_at, now)})


def _no_seat(job: Job, around: Around) -> Reason:
    serving = _serving(job.queue, around.workers or ())
    counts = {"taken": sum(worker.in_flight for worker in serving), "seats": sum(worker.seats for worker in serving)}
    seat = _("starts when a scheduler has a free seat (%(taken)s of %(seats)s are taken).") % counts
    if around.ahead > MAX_AHEAD:
        before = _("Due, behind more than %(count)s jobs of its queue:") % {"count": MAX_AHEAD}
    elif around.ahead:
        before = ngettext(
            "Due, behind one job of its queue:", "Due, behind %(count)s jobs of its queue:", around.ahead
        ) % {"count": around.ahead}
    else:
        before = _("Due:")
    return Reason("due", f"{before} {seat}")


def _serving(queue: str, workers: Sequence[WorkerReport]) -> list[WorkerReport]:
    return [worker for worker in workers if QueueFilter.of(worker.queues).admits(queue)]
