"""What a job waits for, who runs it, or how it ended."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django_helisched import wiring
from django_helisched.exceptions import InvalidOption
from django_helisched.inspection import fleet
from django_helisched.inspection.answer import Answer
from django_helisched.inspection.distances import between, relative
from django_helisched.inspection.rows import damage_of, read_row, read_rows, rows_of
from django_helisched.inspection.surroundings import around
from django_helisched.inspection.waiting import Reason, reasons
from django_helisched.jobs.job import TERMINAL, FailureReason, State
from django_helisched.models import Attempt, Job, Progress, Worker

if TYPE_CHECKING:
    from datetime import datetime

RECENT: Final = 10_000  # newest jobs among which the end of an id is looked for
_SHORTEST: Final = 4  # characters of an id that are worth a look
# The bounds of a UUIDv7: what a prefix leaves open, at its least and at its most.
_LEAST, _MOST = "00000000000070008000000000000000", "ffffffffffff7fffbfffffffffffffff"

_ENDS: Final = {
    FailureReason.EXHAUSTED.value: "its budget of failures is spent ({attempts} of {max_failures})",
    FailureReason.NON_RETRYABLE.value: "it raised NonRetryable, or ended in a way that no retry mends",
    FailureReason.LOST.value: "its workers died or stalled ({losses} times), or it runs at most once and had begun",
    FailureReason.TIMEOUT.value: "the time limit of its last allowed attempt was over",
    FailureReason.EXPIRED.value: "it had not started by the instant at which it expires",
    FailureReason.UNKNOWN_FUNCTION.value: "no running code had the function {fn_path} for UNKNOWN_GRACE",
}


def why(job_id: str) -> Answer:
    """Return why a pending job does not run, who runs a running one, or how a finished one ended.

    ``job_id`` is an id, or as much of its beginning, or of its end (as log lines
    have it), as no other job has. Raises InvalidOption for none and for several.
    """
    job = _found(job_id)
    damage = damage_of(job)
    text = f"This row is damaged: {', '.join(damage)} cannot be read."
    told = [Reason("damaged", text)] if damage else _reasons(job)
    name = f' "{job.name}"' if job.name else ""
    head = f"#{job.pk} {job.fn_path}{name}, queue {job.queue}, priority {job.priority}: {job.state}"
    data = {**_facts(job), "reasons": [{"code": reason.code, "text": reason.text} for reason in told]}
    return Answer(data, [head, *(f"  {reason.text}" for reason in told)])


def _reasons(job: Job) -> list[Reason]:
    if job.state == State.PENDING:
        return reasons(job, around(job))
    now = wiring.job_store().now()
    return _running(job, now) if job.state == State.IN_PROGRESS else _ended(job, now)


def _running(job: Job, now: datetime) -> list[Reason]:
    attempt = f"attempt {job.attempt_count + 1}"
    if job.started_at is None:
        told = [Reason("claimed", f"Taken by {job.lease_holder}, {attempt}; its body has not begun.")]
    else:
        text = f"Running for {between(job.started_at, now)}, {attempt}, by {job.lease_holder}."
        told = [Reason("running", text), *_limit(job, now)]
    told += [_lease(job, now), *_silent_worker(job, now)]
    if job.cancel_requested_at is not None:
        text = (
            f"Asked to stop {relative(job.cancel_requested_at, now)}; its worker learns of it with its next heartbeat."
        )
        told.append(Reason("cancel_requested", text))
    return told + _progress(job)


def _lease(job: Job, now: datetime) -> Reason:
    expires_at = job.lease_expires_at
    if expires_at is not None and expires_at < now:
        text = f"Its lease lapsed {relative(expires_at, now)}: unless it is renewed, a sweep takes the job back."
        return Reason("lease_lapsed", text)
    ends = "is unreadable" if expires_at is None else f"ends {relative(expires_at, now)} unless it is renewed"
    return Reason("leased", f"Its lease {ends}.")


def _limit(job: Job, now: datetime) -> list[Reason]:
    if job.timeout is None or job.started_at is None:
        return []
    ends_at = job.started_at + job.timeout
    verb = "ends" if ends_at > now else "was over"
    return [Reason("timeout", f"Its time limit {verb} {relative(ends_at, now)}.")]


def _silent_worker(job: Job, now: datetime) -> list[Reason]:
    live = fleet.live_workers()
    if live is None or any(worker.id == job.lease_holder for worker in live):
        return []
    row = read_row(Worker, job.lease_holder)
    if row is None:
        return []
    heard = "unreadable" if row.last_seen is None else relative(row.last_seen, now)  # type: ignore[redundant-expr]  # damaged
    verb = "stopped" if row.state == "stopped" else "was last heard of"
    return [Reason("worker_silent", f"Its worker {verb} {heard}.")]


def _progress(job: Job) -> list[Reason]:
    found = read_row(Progress, job.pk)
    if found is None or found.fence != job.fence:
        return []
    total = "" if found.total is None else f" of {found.total}"
    message = f": {found.message}" if found.message else ""
    return [Reason("progress", f"It says it has done {found.done}{total}{message}.")]


def _ended(job: Job, now: datetime) -> list[Reason]:
    when = "" if job.completed_at is None else f" {relative(job.completed_at, now)}"
    after = _last_attempt(job)
    if job.state == State.SUCCESS:
        return [Reason("success", f"Succeeded{when}{after}.")]
    if job.state == State.CANCELED:
        return [Reason("canceled", f"Canceled{when}{after or ', before it ran'}.")]
    because = _ENDS.get(job.failure_reason, job.failure_reason)
    facts = {name: getattr(job, name) for name in ("attempts", "max_failures", "losses", "fn_path")}
    told = [Reason(str(job.failure_reason), f"Failed{when}{after}: {because.format(**facts)}.")]
    if job.last_error:
        told.append(Reason("last_error", f"Its last error: {job.last_error}"))
    return told


def _last_attempt(job: Job) -> str:
    rows = rows_of(Attempt).filter(job_id=job.pk).defer("result", "traceback", "log").order_by("-number")[:1]
    for attempt in read_rows(rows):
        ran = between(attempt.started_at, attempt.ended_at)
        return f", in attempt {attempt.number}, which ran {ran} on {attempt.worker_id}"
    return ""


def _found(text: str) -> Job:
    wanted = text.strip().removeprefix("#").removeprefix("…").replace("-", "").lower()
    if len(wanted) < _SHORTEST or len(wanted) > 32 or set(wanted) - set("0123456789abcdef"):
        raise InvalidOption(
            f'"{text}" is not the id of a job, which is a UUID, nor {_SHORTEST} or more characters of one.'
        )
    ids = [UUID(wanted)] if len(wanted) == 32 else _beginning_with(wanted) or _ending_with(wanted)
    if len(ids) > 1:
        raise InvalidOption(f'Several jobs have an id with "{text}" ({ids[0]}, {ids[1]}, ...). Give more of it.')
    job = read_row(Job, ids[0]) if ids else None
    if job is None:
        where = "" if len(wanted) == 32 else f", nor ends so one of the newest {RECENT:,}"
        begin = "has the id" if len(wanted) == 32 else "has an id that begins with"
        raise InvalidOption(f'No job {begin} "{text}"{where}: it was never stored, was rolled back, or was pruned.')
    return job


def _beginning_with(digits: str) -> list[UUID]:
    bounds = UUID(digits + _LEAST[len(digits) :]), UUID(digits + _MOST[len(digits) :])
    return list(rows_of(Job).filter(id__range=bounds).order_by("id").values_list("id", flat=True)[:2])


def _ending_with(digits: str) -> list[UUID]:
    newest = rows_of(Job).order_by("-id").values_list("id", flat=True)[:RECENT]
    return [job_id for job_id in newest if job_id.hex.endswith(digits)][:2]


def _facts(job: Job) -> dict[str, Any]:
    instants = ("due_at", "next_run_at", "expires_at", "created_at", "started_at", "completed_at", "lease_expires_at")
    words = ("fn_path", "name", "queue", "priority", "state", "hold", "failure_reason", "attempts", "max_failures")
    more = ("losses", "attempt_count", "lease_holder", "space", "trigger", "limit_key", "last_error")
    return {
        "id": str(job.pk),
        **{name: getattr(job, name) for name in (*words, *more)},
        **{name: _iso(getattr(job, name)) for name in (*instants, "cancel_requested_at")},
        "timeout": None if job.timeout is None else job.timeout / timedelta(seconds=1),
        "parent": None if job.parent_id is None else str(job.parent_id),
        "cron": None if job.cron_id is None else str(job.cron_id),
        "is_finished": job.state in TERMINAL,
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
