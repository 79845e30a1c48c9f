"""Crons that only a test asks for, by HELISCHED["CRONS"]."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django_helisched import cron_jobs
from tests.app.jobs import note
from tests.app.tasks import tick

if TYPE_CHECKING:
    from collections.abc import Iterator

every_second = cron_jobs()
every_second.interval("tick", timedelta(seconds=1), tick, catch_up="fire_all")

listing: dict[str, Any] = {}  # what the provider yields: a test fills it


def tenants() -> Iterator[tuple[str, Any]]:
    """Yield each space, or raise what stands in its place."""
    for space, entries in listing.items():
        if isinstance(entries, Exception):
            raise entries
        yield space, entries


of_tenants = cron_jobs()
of_tenants.interval("heartbeat", timedelta(hours=1), note, ["code"])
of_tenants.provider("tenants", tenants)

sixty = cron_jobs()
for number in range(60):
    sixty.interval(f"cron {number}", 2 + number % 3, note, [number], catch_up="fire_all")
