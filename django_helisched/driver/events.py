"""What happened, as values: for log lines, for signals, for whoever watches.

An observer is called after the fact and can change nothing: one that raises is
logged and forgotten.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta
    from uuid import UUID

    from django.dispatch import Signal

    Observer = Callable[["Event"], object]

logger = logging.getLogger("django_helisched.driver")


class What(StrEnum):
    """The names of all events: stable, for log searches and alerts."""

    JOB_STARTED = "job.started"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_RETRIED = "job.retried"
    JOB_SNOOZED = "job.snoozed"
    JOB_CANCELED = "job.canceled"
    JOB_LOST = "job.lost"  # this worker no longer held it: what it did was dropped
    JOB_SWEPT = "job.swept"  # another worker's lease lapsed and the job was taken back
    JOB_HELD = "job.held"  # this code does not know its function
    JOB_RELEASED = "job.released"
    JOB_OVERTIME = "job.overtime"  # it goes on although it was told to stop, where it cannot be abandoned
    JOB_ABANDONED = "job.abandoned"  # its body did not stop: its thread is left behind
    JOB_LATE = "job.late"  # a body that was abandoned has ended after all
    JOB_UNSETTLED = "job.unsettled"  # how it ended could not be written
    LOOP_BLOCKED = "loop.blocked"  # a body keeps the event loop from its other jobs
    LOOP_BACK = "loop.back"
    CRON_PLANNED = "cron.planned"  # when it fires next, told at the start
    CRON_FIRED = "cron.fired"
    CRON_MISSED = "cron.missed"
    CRON_SKIPPED = "cron.skipped"  # an earlier job of it was still live
    CRON_PARKED = "cron.parked"
    CRON_RACED = "cron.raced"  # another process fired it first
    QUEUE_PAUSED = "queue.paused"  # seen at the start, and at the sweep after it happened
    QUEUE_RESUMED = "queue.resumed"
    DRIVER_READY = "driver.ready"
    DRIVER_NOTICE = "driver.notice"
    DRIVER_PRUNED = "driver.pruned"  # a round that deleted old rows is over
    DRIVER_DRAINING = "driver.draining"
    DRIVER_WORN = "driver.worn"  # as many abandoned bodies as seats: it leaves, to be started anew
    DRIVER_STOPPED = "driver.stopped"
    PROCESS_STARTED = "process.started"  # told by a supervisor, as the next ones
    PROCESS_ENDED = "process.ended"  # as it should
    PROCESS_LOST = "process.lost"
    PROCESS_LOOPING = "process.looping"  # it ends again and again
    DATABASE_LOST = "database.lost"
    DATABASE_BACK = "database.back"
    HEARTBEAT_LOST = "heartbeat.lost"
    HEARTBEAT_BACK = "heartbeat.back"
    WAKEUP_READY = "wakeup.ready"  # how this process learns of what others store
    WAKEUP_LOST = "wakeup.lost"  # it polls instead


LEVELS = {
    What.JOB_FAILED: logging.ERROR,
    What.JOB_RETRIED: logging.WARNING,
    What.JOB_LOST: logging.WARNING,
    What.JOB_SWEPT: logging.WARNING,
    What.JOB_HELD: logging.WARNING,
    What.JOB_OVERTIME: logging.ERROR,
    What.JOB_ABANDONED: logging.ERROR,
    What.JOB_LATE: logging.WARNING,
    What.JOB_UNSETTLED: logging.ERROR,
    What.LOOP_BLOCKED: logging.ERROR,
    What.LOOP_BACK: logging.WARNING,
    What.CRON_MISSED: logging.WARNING,
    What.CRON_PARKED: logging.ERROR,
    What.CRON_RACED: logging.DEBUG,
    What.QUEUE_PAUSED: logging.WARNING,
    What.DRIVER_NOTICE: logging.WARNING,
    What.PROCESS_LOST: logging.WARNING,
    What.PROCESS_LOOPING: logging.ERROR,
    What.DRIVER_WORN: logging.ERROR,
    What.DATABASE_LOST: logging.ERROR,
    What.DATABASE_BACK: logging.WARNING,
    What.HEARTBEAT_LOST: logging.ERROR,
    What.HEARTBEAT_BACK: logging.WARNING,
    What.WAKEUP_LOST: logging.WARNING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """Something about one attempt of a job. Arguments and results are never part of it.

    ``failures`` counts the failures so far, this one included, of ``max_failures``.
    ``late`` is how long after its due instant a cron's job began.
    """

    what: What
    job_id: UUID
    fn_path: str
    queue: str
    attempt: int
    failures: int = 0
    max_failures: int = 0
    worker: str = ""
    cron_id: UUID | None = None
    waited: timedelta | None = None
    late: timedelta | None = None
    ran: timedelta | None = None
    retry_in: timedelta | None = None
    error_class: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.job_id} {self.fn_path}" + (f": {self.text}" if self.text else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CronEvent:
    """Something about one firing of a cron. ``next_run_at`` is its next occurrence, None for no more."""

    what: What
    cron_id: UUID
    name: str
    space: str
    tz: str
    fired: int = 0
    missed: int = 0
    late: timedelta | None = None
    next_run_at: datetime | None = None
    text: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.name}: fired {self.fired}, missed {self.missed}" + (
            f" ({self.text})" if self.text else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEvent:
    """Something about this process."""

    what: What
    text: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text}"


Event = JobEvent | CronEvent | DriverEvent


def level_of(event: Event) -> int:
    """Return the log level of an event."""
    return LEVELS.get(event.what, logging.INFO)


def log_event(event: Event) -> None:
    """Log an event; a handler finds it whole in the record's ``event``."""
    logger.log(level_of(event), "%s", event, extra={"event": event})


class Announcer:
    """Tells an observer, and signals' receivers, what happened; whatever they do ends here."""

    def __init__(self, observe: Observer = log_event) -> None:
        self._observe = observe

    def is_heard(self, what: What) -> bool:
        """Tell whether anybody listens; where nobody does, an event need not be made."""
        return self._observe is not log_event or logger.isEnabledFor(LEVELS.get(what, logging.INFO))

    def __call__(self, event: Event) -> None:
        """Hand one event to the observer."""
        self._quietly(lambda: self._observe(event))

    def send(self, signal: Signal, **facts: Any) -> None:
        """Send a signal whose receivers cannot harm the sender."""
        if signal.receivers:
            self._quietly(lambda: signal.send_robust(sender=None, **facts))

    def _quietly(self, tell: Callable[[], object]) -> None:
        try:
            tell()
        except BaseException:
            # Even SystemExit: the seat that tells has a job to finish.
            with suppress(Exception):
                logger.exception("An observer raised; nothing else is changed by it.")
