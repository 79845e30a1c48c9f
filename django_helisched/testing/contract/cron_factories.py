"""Crons, firings and shortcuts for the contract's tests."""

# ruff: noqa: S101

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django_helisched.crons.catch_up import FiringPlan, MissedRun, PlannedFire
from django_helisched.crons.changes import CronUpdate
from django_helisched.crons.cron import CronSnapshot, FireOutcome
from django_helisched.crons.reconcile import ReconcilePlan
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Trigger
from django_helisched.testing.contract.factories import (
    START,
    new_job,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django_helisched.jobs.job import NewJob
    from django_helisched.stores.base import CronStore, JobStore

MINUTE = timedelta(minutes=1)


def new_cron(**given: Any) -> CronSnapshot:
    """Return the row of a cron that is due now, every minute."""
    return CronSnapshot(
        **{
            "id": uuid7(),
            "name": "digest",
            "spec": '{"kind":"interval","ms":60000}',
            "anchor": START,
            "fn_path": "shop.jobs.digest",
            "args": [],
            "kwargs": {},
            "next_run_at": START,
            "counted_since": START - MINUTE,
            "declared_at": START - MINUTE,
            **given,
        }
    )


def inserted(crons: CronStore, cron: CronSnapshot) -> CronSnapshot:
    """Store a cron and return it as it was stored."""
    crons.reconcile(cron.source, cron.space, lambda rows, now: ReconcilePlan(inserts=(cron,)))
    return current(crons, cron)


def current(crons: CronStore, cron: CronSnapshot) -> CronSnapshot:
    """Return the row of a cron that must be there."""
    found = crons.get(cron.id)
    assert found is not None
    return found


def update_of(cron: CronSnapshot, changes: dict[str, Any], dropped: MissedRun | None = None) -> CronUpdate:
    """Return a change that a reconcile plans."""
    return CronUpdate(
        id=cron.id, version=cron.version, name=cron.name, fields=changes, reason="changed", dropped=dropped
    )


def job_of(store: JobStore, cron: CronSnapshot, due_at: datetime, **given: Any) -> NewJob:
    """Return the job of one occurrence."""
    return new_job(store, fn_path=cron.fn_path, cron_id=cron.id, due_at=due_at, trigger=Trigger.CRON, **given)


def plan_of(due_at: datetime) -> FiringPlan:
    """Return the firing of one occurrence."""
    return FiringPlan(fires=(planned(due_at, due_at),), next_run_at=due_at + MINUTE)


def planned(due_at: datetime, now: datetime) -> PlannedFire:
    """Return one occurrence that becomes a job."""
    return PlannedFire(due_at=due_at, outcome=FireOutcome.ENQUEUED, lateness=now - due_at)


def missed_run(first: datetime, last: datetime, count: int) -> MissedRun:
    """Return occurrences that become none."""
    return MissedRun(due_at=first, last_due_at=last, count=count, outcome=FireOutcome.MISSED, reason="too late")
