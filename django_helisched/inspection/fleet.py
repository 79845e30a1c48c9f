"""The schedulers as they report themselves, for pages that must survive a damaged row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_helisched import conf, wiring
from django_helisched.inspection import waiting
from django_helisched.inspection.rows import DAMAGE, read_rows, rows_of
from django_helisched.models import Worker

if TYPE_CHECKING:
    from datetime import datetime

    from django_helisched.stores.base import WorkerReport


def live_workers() -> list[WorkerReport] | None:
    """Return the workers heard of within one lease, None where a damaged row forbids to say."""
    try:
        reports = wiring.job_store().live_workers(conf.get_settings().lease)
    except DAMAGE:
        return None
    return [replace(report, queues=texts(report.queues), functions=texts(report.functions)) for report in reports]


def silence(now: datetime) -> str:
    """Return what to say where no scheduler reports, else ""."""
    if live_workers() != []:
        return ""
    newest = read_rows(rows_of(Worker).order_by("-last_seen", "id")[:1])
    return waiting.silence(newest[0] if newest else None, now)


def texts(value: Any) -> list[str]:
    """Return a stored list as texts; of any other shape, nothing."""
    return [str(item) for item in value] if isinstance(value, list) else []
