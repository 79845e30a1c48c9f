"""Rows as the stores would write them, for pages that only read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.models import LogEntry

from django_helisched import wiring
from django_helisched.jobs.ids import uuid7
from django_helisched.models import Attempt, Cron, Fire, Job, JobArgs, Worker

FUNCTION = "tests.app.jobs.note"
DAILY = '{"expr":"0 9 * * mon-fri","kind":"cron"}'
TERMINAL = {"success", "failed", "canceled"}


def now() -> datetime:
    return wiring.job_store().now()


def new_job(**given: Any) -> Job:
    moment = now()
    values: dict[str, Any] = {
        "fn_path": FUNCTION,
        "kind": "mutation",
        "state": "pending",
        "created_at": moment,
        "due_at": moment,
        "next_run_at": moment,
        **given,
    }
    if values["state"] in TERMINAL:
        values.setdefault("completed_at", moment)
    if values["state"] == "in_progress":
        values.setdefault("lease_holder", "web1:17")
        values.setdefault("lease_expires_at", moment + timedelta(seconds=30))
        values.setdefault("started_at", moment)
        values.setdefault("fence", 1)
    return Job.objects.create(**values)


def new_args(job: Job, *args: Any, context: Any = None, **kwargs: Any) -> JobArgs:
    Job.objects.filter(pk=job.pk).update(has_args=True)
    values: dict[str, Any] = {"args": list(args), "kwargs": kwargs, "context": context, "options": {}, "meta": {}}
    return JobArgs.objects.create(job=job, **values)


def new_attempt(job: Job, **given: Any) -> Attempt:
    moment = now()
    number = Attempt.objects.filter(job=job).count() + 1
    values = {"number": number, "outcome": "failed", "started_at": moment, "ended_at": moment, "worker_id": "web1:17"}
    return Attempt.objects.create(job=job, **{**values, **given})


def new_cron(name: str = "digest", **given: Any) -> Cron:
    moment = now()
    values = {
        "source": "code",
        "name": name,
        "spec": DAILY,
        "tz": "Europe/Paris",
        "anchor": moment,
        "fn_path": FUNCTION,
        "args": [],
        "kwargs": {"mark": name},
        "counted_since": moment,
        "declared_at": moment,
        "next_run_at": moment + timedelta(hours=3),
        **given,
    }
    return Cron.objects.create(**values)


def new_fire(cron: Cron, due_at: datetime, **given: Any) -> Fire:
    values = {"outcome": "enqueued", "last_due_at": due_at, "decided_at": due_at, "job_id": uuid7()}
    return Fire.objects.create(cron=cron, due_at=due_at, **{**values, **given})


def new_worker(name: str = "web1:17", **given: Any) -> Worker:
    moment = now()
    values = {"host": "web1", "pid": 17, "started_at": moment, "last_seen": moment, "version": "0.1.0", "seats": 4}
    return Worker.objects.create(id=name, **{**values, **given})


def state_of(job: Job) -> tuple[str, bool]:
    row = Job.objects.get(pk=job.pk)
    return row.state, row.cancel_requested_at is not None


def entries_of(row: Any) -> list[str]:
    found = LogEntry.objects.filter(object_id=str(row.pk)).order_by("pk")
    return [entry.get_change_message() for entry in found]
