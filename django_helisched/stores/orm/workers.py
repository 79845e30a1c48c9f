"""The rows in which drivers report themselves."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from django_helisched.models import Worker
from django_helisched.stores.base import WorkerReport

if TYPE_CHECKING:
    from datetime import datetime

_LISTS = ("functions", "queues", "declarations")


def report(alias: str, worker: WorkerReport, now: datetime) -> None:
    """Write a worker's own row."""
    values: dict[str, Any] = {**asdict(worker), "last_seen": now}
    values |= {name: list(values[name]) for name in _LISTS}
    key = values.pop("id")
    if not Worker.objects.using(alias).filter(pk=key).update(**values):
        # The sweep and the heartbeat of a new process both report it: whoever comes second has nothing to add.
        Worker.objects.using(alias).bulk_create([Worker(pk=key, **values)], ignore_conflicts=True)


def live(alias: str, since: datetime) -> list[WorkerReport]:
    """Return the workers that reported since then and have not stopped."""
    rows = Worker.objects.using(alias).filter(last_seen__gte=since).exclude(state="stopped").order_by("id")
    names = [item.name for item in fields(WorkerReport)]
    return [WorkerReport(**{name: getattr(row, name) for name in names}) for row in rows]
