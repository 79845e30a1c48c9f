from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django_helisched.crons.cron import CronDeclaration, CronSnapshot

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
EVERY_MINUTE = '{"expr":"* * * * *","kind":"cron"}'
HOURLY = '{"expr":"0 * * * *","kind":"cron"}'
DAILY = '{"expr":"0 9 * * *","kind":"cron"}'


def every(**duration: float) -> str:
    return f'{{"kind":"interval","ms":{timedelta(**duration) // timedelta(milliseconds=1)}}}'


def cron(**fields) -> CronSnapshot:
    """Make the row of a cron that was declared at noon and falls due every hour."""
    defaults = {
        "id": UUID(int=1),
        "name": "digest",
        "spec": HOURLY,
        "fn_path": "shop.jobs.digest",
        "args": [],
        "kwargs": {},
        "anchor": NOON,
        "next_run_at": NOON + timedelta(hours=1),
        "counted_since": NOON,
        "declared_at": NOON,
        "declared_by": "old",
        "tzdata_version": "2026a",
    }
    return CronSnapshot(**{**defaults, **fields})


def declaration(**fields) -> CronDeclaration:
    """Declare the cron of ``cron()``."""
    return CronDeclaration(**{"name": "digest", "spec": HOURLY, "fn_path": "shop.jobs.digest", **fields})
