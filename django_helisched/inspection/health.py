"""Whether the schedulers of this database do their work, as one answer with an exit code."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import Error, connections

from django_helisched import conf, wiring
from django_helisched.driver.booting import missing_tables
from django_helisched.driver.connections import drop_all
from django_helisched.inspection.answer import Answer
from django_helisched.inspection.distances import text_of_duration
from django_helisched.inspection.rows import alias, rows_of
from django_helisched.inspection.waiting import Reason
from django_helisched.models import Cron
from django_helisched.stores.base import EVERY_QUEUE, QueueFilter
from django_helisched.stores.orm.heads import heads
from django_helisched.stores.orm.migrated import not_migrated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from django_helisched.stores.base import WorkerReport
    from django_helisched.stores.orm.heads import Head

_NAMED = 5  # crons and queues that one sentence names


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is still healthy.

    ``age``: of a scheduler's last report; the settings' LEASE where it is None.
    ``wait``: of the job that is due for longest. ``late``: of a cron that nobody
    fires. ``answer``: how long the database may take for all of it.
    """

    age: timedelta | None = None
    wait: timedelta = timedelta(minutes=10)
    late: timedelta = timedelta(minutes=2)
    answer: timedelta = timedelta(seconds=10)


def health(bounds: Bounds) -> Answer:
    """Return whether the database answers, is migrated, has live schedulers, and nothing waits for too long.

    Asked in a thread of its own, so that a database that hangs is an answer, too.
    """
    seconds = bounds.answer.total_seconds()
    found = _within(seconds, lambda: _look(bounds))
    if found is None:
        found = {"problems": [Reason("database", f"The database did not answer within {seconds:g} s.")]}
    problems: list[Reason] = found["problems"]
    data = {**found, "ok": not problems, "problems": [{"code": each.code, "text": each.text} for each in problems]}
    lines = ["UNHEALTHY", *(f"  {each.text}" for each in problems)] if problems else [_all_well(found)]
    return Answer(data, lines, ok=not problems)


def _look(bounds: Bounds) -> dict[str, Any]:
    try:
        return _facts(bounds)
    except Error as error:
        missing = missing_tables(alias())
        if missing:
            return {"problems": [Reason("not_migrated", str(not_migrated(alias(), missing[0])))]}
        line = str(error).strip().partition("\n")[0]
        return {"problems": [Reason("database", f"The database failed: {type(error).__name__}: {line}")]}


def _facts(bounds: Bounds) -> dict[str, Any]:
    age = conf.get_settings().lease if bounds.age is None else bounds.age
    store = wiring.job_store()
    now = store.now()
    reported = store.live_workers(age)
    workers = [worker for worker in reported if worker.state != "draining"]
    due = [head for head in heads(connections[alias()], EVERY_QUEUE, now) if head.due_at <= now]
    oldest = max((now - head.due_at for head in due), default=None)
    late = _late_crons(now - bounds.late)
    problems = [
        _no_scheduler(workers, reported, age),
        _unserved(workers, [head for head in due if now - head.due_at > age]),
        _waiting(oldest, bounds.wait),
        _late(late, bounds.late),
    ]
    return {
        "problems": [problem for problem in problems if problem is not None],
        "schedulers": len(workers),
        "seats": sum(worker.seats for worker in workers),
        "in_flight": sum(worker.in_flight for worker in workers),
        "oldest_due_seconds": None if oldest is None else oldest.total_seconds(),
        "late_crons": late,
    }


def _no_scheduler(workers: Sequence[WorkerReport], reported: Sequence[WorkerReport], age: timedelta) -> Reason | None:
    if workers:
        return None
    if reported:
        return Reason("no_scheduler", "Every scheduler is stopping; none takes new jobs.")
    within = text_of_duration(age)
    return Reason(
        "no_scheduler", f"No scheduler has reported within {within}. Start one: python manage.py runscheduler"
    )


def _unserved(workers: Sequence[WorkerReport], due: Sequence[Head]) -> Reason | None:
    filters = [QueueFilter.of(worker.queues) for worker in workers if worker.seats]
    names = sorted({head.queue for head in due if not any(served.admits(head.queue) for served in filters)})
    if not workers or not names:
        return None
    return Reason("queue_unserved", f"Jobs are due in queues that no running scheduler serves: {_some(names)}.")


def _waiting(oldest: timedelta | None, bound: timedelta) -> Reason | None:
    if oldest is None or oldest <= bound:
        return None
    text = f"A job is due for {text_of_duration(oldest)} and has not started (allowed: {text_of_duration(bound)})."
    return Reason("oldest_due", text)


def _late_crons(before: datetime) -> list[str]:
    active = rows_of(Cron).filter(enabled=True, paused_at__isnull=True, archived_at__isnull=True)
    return [str(cron) for cron in active.filter(next_run_at__lt=before).order_by("next_run_at").only("space", "name")]


def _late(late: Sequence[str], bound: timedelta) -> Reason | None:
    if not late:
        return None
    text = f"No scheduler has fired these crons, due for more than {text_of_duration(bound)}: {_some(late)}."
    return Reason("crons_late", text)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _all_well(found: dict[str, Any]) -> str:
    count, age = found["schedulers"], found["oldest_due_seconds"]
    waits = "" if age is None else text_of_duration(timedelta(seconds=age))
    oldest = f"the oldest due job waits for {waits}" if waits else "no job waits"
    schedulers = f"{count} scheduler{'' if count == 1 else 's'}"
    return f"OK: {schedulers}, {found['in_flight']} of {found['seats']} seats taken, {oldest}, no cron is late."


def _within(seconds: float, ask: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Return the answer, None where it takes longer; what ``ask`` raises is raised."""
    answers: list[dict[str, Any]] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # told to the caller's thread
            errors.append(error)
        finally:
            drop_all()

    thread = threading.Thread(target=work, name="helisched-health", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    return answers[0] if answers else None
