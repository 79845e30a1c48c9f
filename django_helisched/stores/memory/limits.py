"""Who waits for a limit, who is out under it, and whom a look lets out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django_helisched.jobs.job import TERMINAL, Hold
from django_helisched.jobs.limit import hold_of
from django_helisched.stores.base import ADMIT_LIMIT, EVERY_QUEUE, NO_LIMITS
from django_helisched.stores.memory.queues import due_at, is_paused, pending

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django_helisched.jobs.job import JobSnapshot
    from django_helisched.stores.base import DeclaredLimits, QueueFilter
    from django_helisched.stores.memory.rows import Tables


def out_under(tables: Tables, key: str) -> int:
    """Return how many jobs of a limit key are out."""
    live = (job for job in tables.jobs.values() if job.state not in TERMINAL and not job.hold)
    return sum(job.limit_key == key for job in live)


def admit_limited(tables: Tables, queues: QueueFilter, limits: DeclaredLimits, now: datetime) -> int:
    """Let out what free slots are there for; return how many."""
    ripen(tables, now)
    lines: dict[str, list[JobSnapshot]] = {}
    for job in sorted(pending(tables, queues, now, (Hold.LIMIT,)), key=_order):
        if not is_paused(job.queue, tables, now):
            lines.setdefault(job.limit_key, []).append(job)
    open_lines = {key: _free(tables, line, limits) for key, line in sorted(lines.items())}
    share = max(1, ADMIT_LIMIT // max(1, sum(free > 0 for free in open_lines.values())))
    admitted = [job for key, free in open_lines.items() for job in lines[key][: min(free, share)]]
    tables.put(*(replace(job, hold=Hold.NONE, held_at=None) for job in admitted[:ADMIT_LIMIT]))
    return len(admitted[:ADMIT_LIMIT])


def ripen(tables: Tables, now: datetime) -> None:
    """Put what has become due into the line of its limit."""
    later = pending(tables, EVERY_QUEUE, now, (Hold.LATER,))
    ripe = [job for job in later if (moment := due_at(job, tables, now)) is not None and moment <= now]
    tables.put(*(replace(job, hold=Hold.LIMIT, held_at=now) for job in ripe))


def withdraw(tables: Tables, serves: Callable[[str], bool], now: datetime) -> int:
    """Hold again what nobody will claim; return how many."""
    live = [job for job in tables.jobs.values() if job.state not in TERMINAL]
    admitted = [job for job in pending(tables, EVERY_QUEUE, now) if job.limit_key]
    stuck = [job for job in admitted if is_paused(job.queue, tables, now) or not serves(job.queue)]
    tables.put(*(replace(job, hold=hold_of(job.limit_key, job.next_run_at, now), held_at=now) for job in stuck))
    for key in set(tables.limits) - {job.limit_key for job in live}:
        del tables.limits[key]
    return len(stuck)


def _free(tables: Tables, line: list[JobSnapshot], limits: DeclaredLimits) -> int:
    key, capacity = line[0].limit_key, limits.capacity_of(line[0].fn_path)
    ours = (1, NO_LIMITS.since) if capacity is None else (capacity, limits.since)
    known = tables.limits.setdefault(key, ours)
    if ours[0] != known[0] and ours[1] > known[1]:
        tables.limits[key] = ours
    capacity, _ = tables.limits[key]
    return max(0, capacity - out_under(tables, key))


def _order(job: JobSnapshot) -> tuple[int, datetime, object]:
    return (-job.priority, job.next_run_at, job.id)
