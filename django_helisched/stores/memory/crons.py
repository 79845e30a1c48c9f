"""Crons in memory, beside the jobs they make."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_helisched.crons.backfill import fires_after
from django_helisched.crons.fires import fire_missed, fires_made
from django_helisched.jobs.job import TERMINAL
from django_helisched.stores.base import PRUNE_LIMIT, CronStore, PlannedFiring, Pruned
from django_helisched.stores.memory import pruning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from django_helisched.crons.backfill import BackfillPlan
    from django_helisched.crons.catch_up import FiringPlan
    from django_helisched.crons.changes import CronUpdate
    from django_helisched.crons.cron import CronSnapshot, FireSnapshot
    from django_helisched.crons.reconcile import ReconcilePlan
    from django_helisched.jobs.job import NewJob
    from django_helisched.stores.clock import Clock
    from django_helisched.stores.memory.jobs import MemoryJobStore
    from django_helisched.stores.memory.rows import Tables

ERROR_LENGTH = 500  # characters of an error that a row keeps


class MemoryCronStore(CronStore):
    """The crons of one process, gone with it. Shares its tables and transactions with ``jobs``."""

    def __init__(self, clock: Clock, jobs: MemoryJobStore) -> None:
        self._clock = clock
        self._jobs = jobs
        self._rows = jobs.rows

    def now(self) -> datetime:
        return self._clock.now()

    def reconcile(
        self, source: str, space: str, plan: Callable[[Sequence[CronSnapshot], datetime], ReconcilePlan]
    ) -> ReconcilePlan:
        with self._rows.transaction() as tables:
            now = self.now()
            rows = sorted(self.list(source=source, space=space), key=lambda cron: cron.id)
            planned = plan(rows, now)
            for cron in planned.inserts:
                tables.crons[cron.id] = cron
            for update in planned.updates:
                _apply(tables, update, now)
            return planned

    def due(self, *, limit: int) -> Sequence[CronSnapshot]:
        with self._rows.reading() as tables:
            now = self.now()
            due = [(cron.next_run_at, cron.id, cron) for cron in tables.crons.values() if _is_due(cron, now)]
            return [cron for _, _, cron in sorted(due)][:limit]

    def live_jobs(self, cron_id: UUID) -> int:
        with self._rows.reading() as tables:
            return sum(job.cron_id == cron_id and job.state not in TERMINAL for job in tables.jobs.values())

    def fire(self, cron: CronSnapshot, plan: FiringPlan, jobs: Sequence[NewJob]) -> bool:
        with self._rows.transaction() as tables:
            row = _unchanged(tables, cron.id, cron.version)
            if row is None or not row.is_active:
                return False
            plan, jobs = _unfired(tables, row, plan, jobs)
            fired = [fire.due_at for fire in plan.fires]
            changes = {
                "next_run_at": plan.next_run_at,
                "last_fire_at": fired[-1] if fired else row.last_fire_at,
                "fired": row.fired + len(fired),
                "missed": row.missed + plan.missed,
                "last_error": "",
            }
            _write(tables, row, changes)
            if plan.cancels_live_jobs:
                for job_id in [job.id for job in tables.all_jobs() if job.cron_id == cron.id]:
                    self._jobs.cancel(job_id)
            self._jobs.enqueue(jobs)
            made = fires_made(row, plan, [job.id for job in jobs], self.now())
            tables.fires.update({(fire.cron_id, fire.due_at): fire for fire in made})
            return True

    def fire_together(self, firings: Sequence[PlannedFiring]) -> Sequence[bool]:
        with self._rows.transaction():
            return [self.fire(firing.cron, firing.plan, firing.jobs) for firing in firings]

    def backfill(self, cron: CronSnapshot, plan: BackfillPlan, jobs: Sequence[NewJob]) -> bool:
        with self._rows.transaction() as tables:
            row = _unchanged(tables, cron.id, cron.version)
            if row is None or any((cron.id, due_at) not in tables.fires for due_at in plan.replaced):
                return False
            taken = len(plan.due)
            _write(tables, row, {"fired": row.fired + taken, "missed": row.missed - taken})
            self._jobs.enqueue(jobs)
            for due_at in plan.replaced:
                del tables.fires[cron.id, due_at]
            made = fires_after(plan, cron.id, [job.id for job in jobs], self.now())
            tables.fires.update({(fire.cron_id, fire.due_at): fire for fire in made})
            return True

    def prune_fires(
        self, decided_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        with self._rows.transaction() as tables:
            return pruning.prune_fires(tables, decided_before, after=after, limit=limit, pretend=pretend)

    def park(self, cron: CronSnapshot, error: str) -> bool:
        with self._rows.transaction() as tables:
            row = _unchanged(tables, cron.id, cron.version)
            if row is not None:
                _write(tables, row, {"next_run_at": None, "last_error": error[:ERROR_LENGTH]})
            return row is not None

    def change(self, update: CronUpdate) -> bool:
        with self._rows.transaction() as tables:
            return _apply(tables, update, self.now())

    def next_due_at(self) -> datetime | None:
        with self._rows.reading() as tables:
            moments = [cron.next_run_at for cron in tables.crons.values() if cron.is_active]
            return min((moment for moment in moments if moment is not None), default=None)

    def get(self, cron_id: UUID) -> CronSnapshot | None:
        with self._rows.reading() as tables:
            return tables.crons.get(cron_id)

    def find(self, name: str, *, space: str = "") -> Sequence[CronSnapshot]:
        return [cron for cron in self.list(space=space) if cron.name == name]

    def fires_of(
        self, cron_id: UUID, *, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[FireSnapshot]:
        with self._rows.reading() as tables:
            own = [fire for (owner, _), fire in sorted(tables.fires.items()) if owner == cron_id]
            late_enough = [fire for fire in own if since is None or fire.last_due_at >= since]
            return [fire for fire in late_enough if until is None or fire.due_at <= until]

    def list(self, *, source: str | None = None, space: str | None = None) -> Sequence[CronSnapshot]:
        with self._rows.reading() as tables:
            found = [
                cron
                for cron in tables.crons.values()
                if (source is None or cron.source == source) and (space is None or cron.space == space)
            ]
            return sorted(found, key=lambda cron: (cron.source, cron.space, cron.name))


def _is_due(cron: CronSnapshot, now: datetime) -> bool:
    return cron.is_active and cron.next_run_at is not None and cron.next_run_at <= now


def _unchanged(tables: Tables, cron_id: UUID, version: int) -> CronSnapshot | None:
    row = tables.crons.get(cron_id)
    return row if row is not None and row.version == version else None


def _apply(tables: Tables, update: CronUpdate, now: datetime) -> bool:
    row = _unchanged(tables, update.id, update.version)
    if row is not None:
        _write(tables, row, update.fields)
        if update.dropped is not None:
            tables.fires.setdefault((update.id, update.dropped.due_at), fire_missed(update.id, update.dropped, now))
    return row is not None


def _write(tables: Tables, row: CronSnapshot, fields: Mapping[str, Any]) -> None:
    tables.crons[row.id] = replace(row, **{**fields, "version": row.version + 1})


def _unfired(
    tables: Tables, cron: CronSnapshot, plan: FiringPlan, jobs: Sequence[NewJob]
) -> tuple[FiringPlan, list[NewJob]]:
    """Leave out the occurrences that have a Fire already: the clock went back."""
    kept = [pair for pair in zip(plan.fires, jobs, strict=True) if (cron.id, pair[0].due_at) not in tables.fires]
    runs = tuple(run for run in plan.missed_runs if (cron.id, run.due_at) not in tables.fires)
    fires = tuple(fire for fire, _ in kept)
    return replace(plan, fires=fires, missed_runs=runs, missed=sum(run.count for run in runs)), [job for _, job in kept]
