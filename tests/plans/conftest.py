"""A database after a year: most rows have nothing to do with what a claim wants."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from benchmarks.filling import clone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.plugin import DjangoDbBlocker

JOBS, CRONS = "helisched_job", "helisched_cron"
COPY = {"name": "'copy'"}
FINISHED, FUTURE, PAUSED, HELD, DUE, RUNNING, LAPSED, EXPIRED, IDLE_CRONS, DUE_CRONS = (
    13_000, 4_000, 2_000, 600, 400, 40, 5, 5, 3_000, 5,
)  # fmt: skip
LONG_AGO = "'2001-01-01 00:00:00'"
HELD_AT = {"held_at": "one.created_at"}
LEASED = {"state": "'in_progress'", "lease_holder": "'other'", "fence": "1"}


@pytest.fixture(scope="package")
def a_year(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Store the rows once for all tests of this folder, and remove them afterwards."""
    with django_db_blocker.unblock():
        _remove()
        _store_jobs()
        _store_crons()
        with connection.cursor() as cursor:
            table = "TABLE " if connection.vendor == "mysql" else ""
            for name in (JOBS, CRONS):
                cursor.execute(f"ANALYZE {table}{name}")
    yield
    with django_db_blocker.unblock():
        _remove()


@pytest.fixture
def tidied(a_year: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Remove what the test before claimed and rolled back: PostgreSQL meets those entries until a vacuum comes by."""
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(f"VACUUM {JOBS}")


@pytest.fixture
def rows(tidied: None, db: None) -> None:
    """Let a test use the rows; what it changes is rolled back."""


def _store_jobs() -> None:
    from django_helisched import scheduler, wiring
    from tests.app.jobs import tell

    scheduler.enqueue(tell, ["the row that the others are copies of"])
    copy(FINISHED, {"state": "'success'", "completed_at": "one.created_at", "fence": "1", "attempt_count": "1"})
    for priority in (-10, 0, 10, 20):
        copy(FUTURE // 4, {"next_run_at": "{in_a_year}", "due_at": "{in_a_year}", "priority": str(priority)})
    wiring.job_store().pause_queue("paused", by="the tests")
    copy(PAUSED, {"queue": "'paused'"})
    copy(HELD // 2, HELD_AT | {"hold": "'unknown_function'", "fn_path": "'nobody.knows'"})
    copy(HELD // 2, HELD_AT | {"hold": "'limit'", "limit_key": "'full'"})
    copy(RUNNING, LEASED | {"lease_expires_at": "{in_a_year}"})
    copy(LAPSED, LEASED | {"lease_expires_at": LONG_AGO})
    copy(EXPIRED, {"expires_at": LONG_AGO})
    scheduler.enqueue_many([(tell, [number]) for number in range(DUE)])


def copy(count: int, changes: dict[str, str]) -> None:
    clone(JOBS, count, COPY | changes, which="name = ''")


def _store_crons() -> None:
    from django_helisched import wiring
    from django_helisched.models import Cron

    now = wiring.cron_store().now()
    common: dict[str, Any] = {"source": "api", "spec": '{"expr":"0 * * * *","kind":"cron"}', "tz": "Europe/Paris"}
    facts = {"fn_path": "tests.app.jobs.tell", "anchor": now, "counted_since": now, "declared_at": now}
    idle = {"next_run_at": now + timedelta(days=1)}
    Cron.objects.bulk_create(
        [
            Cron(name=f"cron {number}", **common, **facts, **(idle if number >= DUE_CRONS else {"next_run_at": now}))
            for number in range(DUE_CRONS + IDLE_CRONS)
        ],
        batch_size=1000,
    )


def _remove() -> None:
    from django_helisched.models import Cron, Job, JobArgs, Queue

    for model in (JobArgs, Job, Queue, Cron):
        # One statement: there is nothing beside these rows that would have to go along.
        model._default_manager.all()._raw_delete("default")
