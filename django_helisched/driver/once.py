"""Run what is due and stop, for an external cron."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django_helisched.driver.events import CronEvent, What, log_event

if TYPE_CHECKING:
    from datetime import datetime

    from django_helisched.driver.driver import Driver
    from django_helisched.driver.events import Event

# Looks at a due job that cannot be claimed, because another transaction holds its row, before it is left.
LOOKS = 20

_COUNTED = {
    What.JOB_STARTED: "started",
    What.JOB_SUCCEEDED: "succeeded",
    What.JOB_FAILED: "failed",
    What.JOB_RETRIED: "retried",
    What.JOB_SNOOZED: "snoozed",
    What.JOB_CANCELED: "canceled",
    What.JOB_LOST: "lost",
    What.JOB_HELD: "held",
    What.JOB_SWEPT: "swept",
}


class Tally:
    """An observer that counts what happened, and logs it, too."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter(dict.fromkeys([*_COUNTED.values(), "fired", "missed", "parked"], 0))

    def __call__(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, CronEvent):
            self._count_cron(event)
        elif event.what in _COUNTED:
            self._counts[_COUNTED[event.what]] += 1
        log_event(event)

    def summary(self) -> dict[str, Any]:
        """Return the counts by name."""
        return dict(self._counts)

    def _count_cron(self, event: CronEvent) -> None:
        if event.what is What.CRON_FIRED:
            self._counts["fired"] += event.fired
        elif event.what in {What.CRON_MISSED, What.CRON_SKIPPED}:
            self._counts["missed"] += event.missed
        elif event.what is What.CRON_PARKED:
            self._counts["parked"] += 1


def run_once(driver: Driver) -> None:
    """Fire and run what is due now, wait for it, and return; retries and new jobs are left for the next time.

    Raises what the database raises.
    """
    with driver.at_work():
        driver.boot()
        driver.tick()
        _run_due_until(driver, driver.jobs.now())
        if not driver.is_stopping:
            driver.prune()
        driver.drain()


def _run_due_until(driver: Driver, cutoff: datetime) -> None:
    looks = 0
    while driver.has_seats and not driver.is_stopping and looks < LOOKS:
        next_due_at = driver.jobs.next_due_at(driver.config.queues, waiting=True)
        if next_due_at is None or next_due_at > cutoff:
            return
        driver.wait()
        looks = 0 if driver.tick().claimed or driver.in_flight else looks + 1
