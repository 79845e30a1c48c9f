"""One JSON object for each event, for machines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from django_helisched.driver.events import CronEvent, Event, JobEvent


class JsonFormatter(logging.Formatter):
    """Log records as JSON, one object a line; every event of one kind has the same keys."""

    def __init__(self, process: int | None = None) -> None:
        super().__init__()
        self._process: dict[str, Any] = {} if process is None else {"process": process}

    def format(self, record: logging.LogRecord) -> str:
        """Return the object; ``ts`` is UTC, durations are whole milliseconds or seconds as their names say."""
        moment = datetime.fromtimestamp(record.created, tz=UTC)
        head = {"ts": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z", "level": record.levelname}
        event: Event | None = getattr(record, "event", None)
        body = _record_facts(record) if event is None else facts_of(event)
        if record.exc_info:
            body["traceback"] = self.formatException(record.exc_info)
        return json.dumps({**head, **self._process, **body})


def facts_of(event: Event) -> dict[str, Any]:
    """Return an event as what JSON can hold."""
    if isinstance(event, JobEvent):
        return _job_facts(event)
    if isinstance(event, CronEvent):
        return _cron_facts(event)
    return {"event": event.what.value, "text": event.text}


def _record_facts(record: logging.LogRecord) -> dict[str, Any]:
    return {"event": "log", "logger": record.name, "text": record.getMessage()}


def _job_facts(event: JobEvent) -> dict[str, Any]:
    return {
        "event": event.what.value,
        "job": str(event.job_id),
        "fn": event.fn_path,
        "queue": event.queue,
        "attempt": event.attempt,
        "failures": event.failures,
        "of": event.max_failures,
        "waited_ms": _milliseconds(event.waited),
        "late_ms": _milliseconds(event.late),
        "ran_ms": _milliseconds(event.ran),
        "retry_in_s": None if event.retry_in is None else event.retry_in.total_seconds(),
        "error": event.error_class or None,
        "text": event.text or None,
        "cron": None if event.cron_id is None else str(event.cron_id),
        "worker": event.worker or None,
    }


def _cron_facts(event: CronEvent) -> dict[str, Any]:
    return {
        "event": event.what.value,
        "cron": str(event.cron_id),
        "name": event.name,
        "space": event.space,
        "tz": event.tz,
        "fired": event.fired,
        "missed": event.missed,
        "late_ms": _milliseconds(event.late),
        "next_run_at": None if event.next_run_at is None else event.next_run_at.isoformat(),
        "text": event.text or None,
    }


def _milliseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // timedelta(milliseconds=1)
