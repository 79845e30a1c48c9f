"""Which due jobs a claim takes, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.crons.cron import Overlap
from django_helisched.jobs.job import TERMINAL, Hold, State
from django_helisched.stores.visits import goes_by_age, visit_order

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from django_helisched.jobs.job import JobSnapshot
    from django_helisched.stores.base import QueueFilter, QueuePause
    from django_helisched.stores.memory.rows import Tables


def pending(
    tables: Tables, queues: QueueFilter, now: datetime, holds: Collection[str] = (Hold.NONE,)
) -> list[JobSnapshot]:
    """Return the pending jobs of served queues that have one of these holds and that have not expired."""
    held = [job for job in tables.jobs.values() if job.state == State.PENDING and job.hold in holds]
    fresh = [job for job in held if job.expires_at is None or job.expires_at >= now]
    return [job for job in fresh if queues.admits(job.queue)]


def due_at(job: JobSnapshot, tables: Tables, now: datetime) -> datetime | None:
    """Return from when on a claim may take a waiting job: never in a paused queue, unless the pause has an end."""
    pause = tables.paused.get(job.queue)
    if pause is None or is_over(pause, now):
        return job.next_run_at
    return None if pause.until is None else max(job.next_run_at, pause.until)


def is_over(pause: QueuePause, now: datetime) -> bool:
    """Tell whether a pause has run out."""
    return pause.until is not None and pause.until <= now


def is_paused(queue: str, tables: Tables, now: datetime) -> bool:
    """Tell whether claims stay away from the queue."""
    pause = tables.paused.get(queue)
    return pause is not None and not is_over(pause, now)


def front_of(tables: Tables, line: list[JobSnapshot]) -> list[JobSnapshot]:
    """Return which of the jobs that wait for one another may go on: the first, once none is out."""
    cron = None if line[0].cron_id is None else tables.crons.get(line[0].cron_id)
    if cron is None or cron.overlap == Overlap.ALLOW:
        return line
    live = [job for job in tables.jobs.values() if job.cron_id == cron.id and job.state not in TERMINAL]
    return line[:1] if all(job.hold == Hold.OVERLAP for job in live) else []


def chosen(due: Iterable[JobSnapshot], *, limit: int, turn: int) -> list[JobSnapshot]:
    """Return at most ``limit`` of the due jobs, in the order in which they are taken."""
    return (_by_age(due) if goes_by_age(turn) else _by_visit(due, limit, turn))[:limit]


def _by_age(due: Iterable[JobSnapshot]) -> list[JobSnapshot]:
    return sorted(due, key=lambda job: (job.next_run_at, job.id))


def _by_visit(due: Iterable[JobSnapshot], limit: int, turn: int) -> list[JobSnapshot]:
    lines: dict[str, list[JobSnapshot]] = {}
    for job in sorted(due, key=lambda job: (-job.priority, job.next_run_at, job.id)):
        lines.setdefault(job.queue, []).append(job)
    visit = visit_order(lines, limit, turn)
    shares = [job for queue, share in visit for job in lines[queue][:share]]
    rest = [job for queue, share in visit for job in lines[queue][share:]]
    return [*shares, *rest]
