"""The settlement of one success, whose statements may pass Django's cursor by."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, transaction

from django_helisched.models import Attempt, Job
from django_helisched.stores.base import SettleAnswer, Settlement
from django_helisched.stores.orm import OrmCronStore, OrmJobStore, prepare_process
from django_helisched.testing.contract.factories import new_job, success
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.testing.clock import ManualClock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def jobs(clock: ManualClock) -> OrmJobStore:
    return OrmJobStore("default", clock)


@pytest.fixture
def crons(clock: ManualClock) -> OrmCronStore:
    return OrmCronStore("default", clock)


def settlement(jobs: OrmJobStore) -> Settlement:
    jobs.enqueue([new_job(jobs)])
    (claim,) = jobs.claim(worker_id="w", limit=1, lease=timedelta(seconds=30))
    return Settlement(claim=claim, outcome=success({"a": [1]}), started_at=jobs.now(), log="line")


def test_whoever_wraps_the_execution_of_queries_sees_a_mutation_settle(driver: Driver):
    bodies.write.enqueue("a")
    seen: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        driver.tick()
    assert any("UPDATE" in sql and "state = 'success'" in sql for sql in seen)
    assert any("INSERT INTO" in sql and "helisched_attempt" in sql for sql in seen)
    assert not connection.execute_wrappers


@pytest.mark.parametrize("is_watched", [False, True])
def test_it_writes_the_same_whether_it_is_watched_or_not(jobs: OrmJobStore, is_watched: bool):
    one = settlement(jobs)
    connection.force_debug_cursor = is_watched
    try:
        with jobs.atomic():
            assert jobs.settle([one]) == [SettleAnswer.DONE]
            assert jobs.settle([one]) == [SettleAnswer.LOST]
    finally:
        connection.force_debug_cursor = False
    (attempt,) = jobs.attempts_of(one.claim.id)
    assert (attempt.number, attempt.result, attempt.log) == (1, {"a": [1]}, "line")
    assert (attempt.started_at, attempt.ended_at) == (one.started_at, jobs.now())
    assert Job.objects.get().completed_at == jobs.now()


def test_where_its_attempt_cannot_be_written_nothing_of_the_transaction_commits(jobs: OrmJobStore):
    one = settlement(jobs)
    taken = {"number": 1, "outcome": "lost", "ended_at": jobs.now(), "worker_id": "other"}
    Attempt.objects.create(job_id=one.claim.id, **taken)
    with transaction.atomic():
        with pytest.raises(IntegrityError):
            jobs.settle([one])
        assert connection.needs_rollback
    assert Job.objects.get().state == "in_progress"


def test_sqlite_copies_its_log_rarely_unless_the_project_says_how_often_and_others_are_left_as_they_are():
    given = dict(connection.settings_dict["OPTIONS"])
    prepare_process("default")
    if connection.vendor != "sqlite":
        assert connection.settings_dict["OPTIONS"] == given
        return
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA wal_autocheckpoint").fetchone() == (4000,)
    prepare_process("default")
    assert connection.settings_dict["OPTIONS"]["init_command"].count("wal_autocheckpoint") == 1
