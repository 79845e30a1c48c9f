from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import ClaimedJob, JobSnapshot, NewJob
from django_helisched.stores.memory.transitions import born, claim_of, claimed

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
LEASE = timedelta(seconds=30)


def new_job(**given: Any) -> NewJob:
    instants = dict.fromkeys(("created_at", "due_at", "next_run_at"), NOON)
    return NewJob(**{"id": uuid7(), "fn_path": "shop.jobs.work", **instants, **given})


def job(**given: Any) -> JobSnapshot:
    """Make the row of a job; fields of a row that is not new are written over it."""
    names = {item.name for item in fields(NewJob)}
    made = born(new_job(**{name: value for name, value in given.items() if name in names}), None)
    return _with(made, {name: value for name, value in given.items() if name not in names})


def running(**given: Any) -> JobSnapshot:
    """Make the row of a job that worker-1 holds since noon."""
    names = {item.name for item in fields(NewJob)}
    first = job(**{name: value for name, value in given.items() if name in names})
    held = claimed(first, worker_id="worker-1", now=NOON, lease=LEASE)
    return _with(held, {name: value for name, value in given.items() if name not in names})


def claim(**given: Any) -> ClaimedJob:
    return claim_of(running(**given), {})


def _with(made: JobSnapshot, changes: dict[str, Any]) -> JobSnapshot:
    return replace(made, **changes)
