"""Rows that hold what their columns cannot read: shown as far as they can be, and no page falls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from tests.surface.admin.pages import act, address, rows, shown, told
from tests.surface.admin.rows import new_args, new_attempt, new_cron, new_fire, new_job, new_worker, now

pytestmark = pytest.mark.django_db

FIRST = datetime(1000, 1, 1, tzinfo=UTC)  # as early as MySQL goes
LAST = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)

# What each database lets into a column of instants that Python cannot read.
UNREADABLE = {"sqlite": "not a time", "postgresql": "infinity", "mysql": "0000-00-00 00:00:00"}


def spoil(row: Any, column: str, value: str) -> None:
    """Write what no store would."""
    field = row._meta.pk
    key = field.get_db_prep_value(row.pk, connection)
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute("SET SESSION sql_mode = ''")
        table = connection.ops.quote_name(row._meta.db_table)
        cursor.execute(f"UPDATE {table} SET {column} = %s WHERE {field.column} = %s", [value, key])


@pytest.mark.parametrize("column", ["due_at", "next_run_at", "created_at", "expires_at"])
def test_an_unreadable_instant_of_a_job_hides_no_other_job(operator, column):
    cron = new_cron()
    good, bad = new_job(cron=cron), new_job(cron=cron, state="failed", last_error="boom")
    spoil(bad, column, UNREADABLE[connection.vendor])
    assert rows(operator) == {good.pk, bad.pk}
    assert operator.get(address("job_change", bad.pk)).status_code == 200
    assert operator.get(address("job_history", bad.pk)).status_code == 200
    assert operator.get(address("job_requeue", bad.pk)).status_code == 200


def test_an_unreadable_instant_of_its_cron_hides_no_job(operator):
    cron = new_cron()
    job = new_job(cron=cron)
    spoil(cron, "next_run_at", UNREADABLE[connection.vendor])
    assert rows(operator) == {job.pk}
    assert operator.get(address("job_change", job.pk)).status_code == 200


def test_an_unreadable_instant_of_a_cron_hides_no_other_cron(operator):
    new_cron("good")
    bad = new_cron("bad")
    for column in ("anchor", "next_run_at", "counted_since"):
        spoil(bad, column, UNREADABLE[connection.vendor])
    text = shown(operator, address("cron_changelist"))
    assert "good" in text
    assert "bad" in text
    for view in ("change", "history", "pause"):
        assert operator.get(address(f"cron_{view}", bad.pk)).status_code == 200


def test_json_that_is_none_is_named_on_the_row(operator):
    new_cron("good")
    bad = new_cron("bad")
    spoil(bad, "kwargs", "{not json")
    text = shown(operator, address("cron_changelist"))
    assert "This row is damaged: kwargs cannot be read." in text
    assert "good" in text
    assert "This row is damaged" in shown(operator, address("cron_change", bad.pk))


def test_arguments_that_are_no_json_are_said_to_be_damaged(operator):
    job = new_job()
    spoil(new_args(job, 1), "args", "{not json s3cr3t")
    text = shown(operator, address("job_change", job.pk))
    assert "This row is damaged: args cannot be read." in text
    assert "s3cr3t" not in text


def test_a_result_that_is_no_json_is_said_to_be_unreadable(operator):
    job = new_job(state="success")
    spoil(new_attempt(job, outcome="success", result=1), "result", "{not json")
    assert "The stored result cannot be read." in shown(operator, address("job_change", job.pk))


def test_a_worker_with_damaged_json_is_listed(operator):
    worker = new_worker()
    spoil(worker, "queues", "{not json")
    assert worker.pk in shown(operator, address("worker_changelist"))
    assert operator.get(address("worker_change", worker.pk)).status_code == 200


def test_damaged_attempts_and_fires_are_listed(operator):
    job, cron = new_job(), new_cron()
    spoil(new_attempt(job), "ended_at", UNREADABLE[connection.vendor])
    spoil(new_fire(cron, now()), "last_due_at", UNREADABLE[connection.vendor])
    assert operator.get(address("job_change", job.pk)).status_code == 200
    assert operator.get(address("cron_change", cron.pk)).status_code == 200


@pytest.mark.parametrize("moment", [FIRST, LAST], ids=["first", "last"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/Adak"])
def test_the_ends_of_the_calendar_break_no_page(operator, settings, moment, zone):
    settings.TIME_ZONE = zone
    pending = new_job(due_at=moment, next_run_at=moment, expires_at=moment)
    ended = new_job(state="failed", created_at=moment, started_at=moment, completed_at=moment)
    cron = new_cron(next_run_at=moment, last_fire_at=moment, start=moment, end=moment, anchor=moment)
    new_fire(cron, moment)
    assert rows(operator) == {pending.pk, ended.pk}
    for job in (pending, ended):
        assert operator.get(address("job_change", job.pk)).status_code == 200
    assert operator.get(address("cron_changelist")).status_code == 200
    assert operator.get(address("cron_change", cron.pk)).status_code == 200


def test_words_that_nobody_knows_break_no_page(operator):
    job = new_job(state="pending", hold="bogus", trigger="bogus", failure_reason="bogus", kind="bogus")
    new_attempt(job, outcome="bogus")
    assert rows(operator) == {job.pk}
    assert operator.get(address("job_change", job.pk)).status_code == 200


def test_an_action_on_a_damaged_row_leaves_the_others_done(operator):
    good, bad = new_job(state="failed"), new_job(state="failed")
    spoil(bad, "due_at", UNREADABLE[connection.vendor])
    (said,) = told(act(operator, "job", "requeue_selected", [bad.pk, good.pk]))
    assert said.startswith(("Requeued 1. Failed 1", "Requeued 2."))
    good.refresh_from_db()
    assert good.state == "pending"


def test_a_long_duration_is_shown(operator):
    job = new_job(timeout=timedelta(days=9999))
    assert "9999 d" in shown(operator, address("job_change", job.pk))
