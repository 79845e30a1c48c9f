"""Delete old rows: the walks of the contract, over sorted keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.crons.fires import is_behind
from django_helisched.jobs.ids import first_id
from django_helisched.jobs.job import TERMINAL, JobSnapshot
from django_helisched.jobs.retention import Cut, Ties, is_free, is_spent
from django_helisched.stores.base import Pruned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime
    from uuid import UUID

    from django_helisched.stores.memory.rows import Tables


def prune_jobs(tables: Tables, cut: Cut, *, after: Any, limit: int, pretend: Collection[UUID] | None) -> Pruned:
    """Delete finished jobs of one state; see JobStore.prune."""
    keys = (job.id for job in tables.jobs.values() if job.state == cut.state and job.id < cut.before)
    looked, reached = _step(keys, after, limit)
    gone: set[UUID] = set(pretend or ())
    for job in [tables.jobs[key] for key in looked]:
        if is_spent(job, cut) and is_free(_ties(tables, job, gone)):
            gone.add(job.id)
    pruned = gone.intersection(looked)
    if pretend is None:
        for job_id in pruned:
            del tables.jobs[job_id]
            tables.payloads.pop(job_id, None)
            tables.attempts.pop(job_id, None)
            tables.progress.pop(job_id, None)
    return Pruned(count=len(pruned), ids=frozenset(pruned), after=reached)


def _ties(tables: Tables, job: JobSnapshot, gone: Collection[UUID]) -> Ties:
    batch = None if job.batch_id is None else tables.batches.get(job.batch_id)
    return Ties(
        parent_is_there=job.parent_id in tables.jobs and job.parent_id not in gone,
        has_live_child=any(child.parent_id == job.id and child.state not in TERMINAL for child in tables.jobs.values()),
        batch_is_open=batch is not None and batch.completed_at is None,
    )


def prune_workers(tables: Tables, seen_before: datetime, *, after: Any, limit: int, pretend: bool) -> Pruned:
    """Delete rows of workers; see JobStore.prune_workers."""
    looked, reached = _step(tables.workers, after, limit)
    gone = [key for key in looked if tables.workers[key][1] < seen_before]
    if not pretend:
        for key in gone:
            del tables.workers[key]
    return Pruned(count=len(gone), after=reached)


def prune_batches(tables: Tables, ended_before: datetime, *, after: Any, limit: int, pretend: bool) -> Pruned:
    """Delete batches that are over and empty; see JobStore.prune_batches."""
    made_before = (key for key in tables.batches if key < first_id(ended_before))
    looked, reached = _step(made_before, after, limit)
    used = {job.batch_id for job in tables.jobs.values()}
    ends = {key: tables.batches[key].completed_at for key in looked}
    gone = [key for key, ended in ends.items() if ended is not None and ended < ended_before and key not in used]
    if not pretend:
        for key in gone:
            del tables.batches[key]
    return Pruned(count=len(gone), after=reached)


def prune_fires(tables: Tables, decided_before: datetime, *, after: Any, limit: int, pretend: bool) -> Pruned:
    """Delete what became of occurrences; see CronStore.prune_fires."""
    looked, reached = _step(tables.fires, after, limit)
    gone = []
    for key in looked:
        cron, fire = tables.crons.get(key[0]), tables.fires[key]
        if fire.decided_at < decided_before and is_behind(fire.last_due_at, None if cron is None else cron.next_run_at):
            gone.append(key)
    if not pretend:
        for key in gone:
            del tables.fires[key]
    return Pruned(count=len(gone), after=reached)


def _step(keys: Iterable[Any], after: Any, limit: int) -> tuple[list[Any], Any]:
    """Return the next ``limit`` keys in their order, and the last of them unless the end was reached."""
    looked = sorted(key for key in keys if after is None or key > after)[:limit]
    return looked, looked[-1] if len(looked) == limit else None
