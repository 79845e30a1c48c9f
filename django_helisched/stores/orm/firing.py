"""Fire a cron: the row moves, the jobs and the Fire rows appear, or nothing happens."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from django.db import IntegrityError, connections, transaction

from django_helisched.crons.cron import CronSnapshot, FireSnapshot
from django_helisched.crons.fires import fire_missed, fires_made
from django_helisched.models import Cron, Fire
from django_helisched.stores.base import PlannedFiring
from django_helisched.stores.orm.batching import completing_batches
from django_helisched.stores.orm.connection import is_duplicate_key, operator_transaction
from django_helisched.stores.orm.insert_statements import insert_many
from django_helisched.stores.orm.inserting import store_all
from django_helisched.stores.orm.new_rows import new_row
from django_helisched.stores.orm.operating import cancel_jobs_of, live_jobs_of
from django_helisched.stores.orm.rows import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django_helisched.crons.catch_up import FiringPlan
    from django_helisched.crons.changes import CronUpdate
    from django_helisched.crons.reconcile import ReconcilePlan
    from django_helisched.jobs.job import NewJob

_COLUMNS = tuple(item.name for item in fields(CronSnapshot))
_FIRE = tuple(item.name for item in fields(FireSnapshot))


def fire(
    alias: str,
    cron: CronSnapshot,
    plan: FiringPlan,
    jobs: Sequence[NewJob],
    *,
    new_id: Callable[[], UUID],
    now: datetime,
) -> bool:
    """Apply a firing; see CronStore.fire."""
    waits_for_jobs = plan.cancels_live_jobs and live_jobs_of(alias, cron.id).exists()
    with operator_transaction(alias) if waits_for_jobs else nullcontext():
        return _fire_unfired(alias, cron, plan, jobs, new_id=new_id, now=now)


def _fire_unfired(
    alias: str,
    cron: CronSnapshot,
    plan: FiringPlan,
    jobs: Sequence[NewJob],
    *,
    new_id: Callable[[], UUID],
    now: datetime,
) -> bool:
    try:
        return _fire(alias, cron, plan, jobs, new_id=new_id, now=now)
    except IntegrityError as error:
        if not is_duplicate_key(error):
            raise
    # The clock stepped back (a failover to a server that lags): those occurrences have a Fire row already.
    return _fire(alias, cron, *_without_fired(alias, cron, plan, jobs), new_id=new_id, now=now)


def _fire(
    alias: str,
    cron: CronSnapshot,
    plan: FiringPlan,
    jobs: Sequence[NewJob],
    *,
    new_id: Callable[[], UUID],
    now: datetime,
) -> bool:
    with transaction.atomic(using=alias), completing_batches(alias, new_id=new_id, now=now):
        if not _move(alias, cron, plan):
            return False
        if plan.cancels_live_jobs:
            cancel_jobs_of(alias, cron.id, new_id=new_id, now=now)
        _store(alias, [PlannedFiring(cron=cron, plan=plan, jobs=jobs)], now)
    return True


def fire_together(alias: str, firings: Sequence[PlannedFiring], now: datetime) -> list[bool]:
    """Apply several firings in one transaction; see CronStore.fire_together."""
    moved: dict[UUID, bool] = {}
    with transaction.atomic(using=alias):
        # By id, so that two processes that saw the same crons due wait for one another and do not deadlock.
        for firing in sorted(firings, key=lambda firing: firing.cron.id):
            moved[firing.cron.id] = _move(alias, firing.cron, firing.plan)
        _store(alias, [firing for firing in firings if moved[firing.cron.id]], now)
    return [moved[firing.cron.id] for firing in firings]


def _move(alias: str, cron: CronSnapshot, plan: FiringPlan) -> bool:
    connection = connections[alias]
    table = columns(Cron, ("next_run_at", "last_fire_at", "id"), connection)
    last_fire_at = plan.fires[-1].due_at if plan.fires else cron.last_fire_at
    due, last, key = table.adapt([plan.next_run_at, last_fire_at, cron.id])
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table.table} SET next_run_at = %s, last_fire_at = %s, fired = fired + %s, missed = missed + %s, "
            "version = version + 1, last_error = '' WHERE id = %s AND version = %s AND enabled "
            "AND paused_at IS NULL AND archived_at IS NULL",
            [due, last, len(plan.fires), plan.missed, key, cron.version],
        )
        return bool(cursor.rowcount == 1)


def _store(alias: str, firings: Sequence[PlannedFiring], now: datetime) -> None:
    """Insert the jobs and the Fire rows of crons that were moved."""
    connection = connections[alias]
    store_all(connection, [(job, new_row(job)) for firing in firings for job in firing.jobs])
    fires = [
        fire
        for firing in firings
        for fire in fires_made(firing.cron, firing.plan, [job.id for job in firing.jobs], now)
    ]
    insert_many(connection, Fire, _FIRE, [[getattr(fire, name) for name in _FIRE] for fire in fires])


def _without_fired(
    alias: str, cron: CronSnapshot, plan: FiringPlan, jobs: Sequence[NewJob]
) -> tuple[FiringPlan, list[NewJob]]:
    due = [fire.due_at for fire in plan.fires] + [run.due_at for run in plan.missed_runs]
    known = set(Fire.objects.using(alias).filter(cron_id=cron.id, due_at__in=due).values_list("due_at", flat=True))
    kept = [pair for pair in zip(plan.fires, jobs, strict=True) if pair[0].due_at not in known]
    missed = tuple(run for run in plan.missed_runs if run.due_at not in known)
    plan = replace(
        plan,
        fires=tuple(fire for fire, _ in kept),
        missed_runs=missed,
        missed=sum(run.count for run in missed),
    )
    return plan, [job for _, job in kept]


def fires_of(alias: str, cron_id: UUID, since: datetime | None, until: datetime | None) -> list[FireSnapshot]:
    """Return what became of occurrences; see CronStore.fires_of."""
    rows = Fire.objects.using(alias).filter(cron_id=cron_id).order_by("due_at")
    if since is not None:
        # Runs do not overlap, so that only the last one before can reach into that time.
        before = rows.filter(due_at__lt=since).order_by("-due_at").values_list("due_at", "last_due_at").first()
        rows = rows.filter(due_at__gte=since if before is None or before[1] < since else before[0])
    if until is not None:
        rows = rows.filter(due_at__lte=until)
    return [FireSnapshot(**row) for row in rows.values(*_FIRE)]


def apply_reconcile(alias: str, plan: ReconcilePlan, now: datetime) -> None:
    """Write a reconcile's plan inside the transaction that holds the rows."""
    for new in plan.inserts:
        Cron.objects.using(alias).create(**{name: getattr(new, name) for name in _COLUMNS})
    for update in plan.updates:
        apply_update(alias, update, now)


def apply_update(alias: str, update: CronUpdate, now: datetime) -> bool:
    """Write one update, and the Fire row of what it drops; False: the cron changed meanwhile."""
    row = Cron.objects.using(alias).filter(pk=update.id, version=update.version)
    changed = row.update(**{**update.fields, "version": update.version + 1})
    if changed and update.dropped is not None:
        fire = fire_missed(update.id, update.dropped, now)
        dropped = Fire(**{name: getattr(fire, name) for name in _FIRE})
        Fire.objects.using(alias).bulk_create([dropped], ignore_conflicts=True)
    return bool(changed)
