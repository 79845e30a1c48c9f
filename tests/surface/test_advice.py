"""What a developer is told while DEBUG is on, and what is said where tables are missing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection

from django_helisched import mutation, wiring
from django_helisched.exceptions import NotMigrated
from django_helisched.functions import advice
from django_helisched.stores.base import WorkerReport

if TYPE_CHECKING:
    from collections.abc import Iterator


@mutation(queue="mails")
def write_down() -> None: ...


@pytest.fixture
def debug(settings: Any) -> Iterator[None]:
    settings.DEBUG = True
    advice._told.clear()
    yield
    advice._told.clear()


def report(*queues: str) -> None:
    store = wiring.job_store()
    store.report_worker(WorkerReport(id="w1", started_at=store.now(), queues=queues))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.django_db
def test_the_first_job_that_nobody_will_run_is_told_once(debug: None, caplog: pytest.LogCaptureFixture):
    job = write_down.enqueue()
    write_down.enqueue()
    assert warnings(caplog) == [
        (
            f"Job #{job.pk.hex[-8:]} is stored, but no scheduler is running. "
            "In another terminal: python manage.py runscheduler"
        )
    ]


@pytest.mark.django_db
def test_a_queue_that_nobody_serves_is_told_with_the_one_that_was_meant(debug: None, caplog: pytest.LogCaptureFixture):
    report("mail", "default")
    write_down.enqueue()
    assert warnings(caplog) == [
        'Queue "mails" is served by no running scheduler (they serve: default, mail). Did you mean "mail"?'
    ]


@pytest.mark.django_db
def test_a_queue_that_somebody_serves_is_not_spoken_of(debug: None, caplog: pytest.LogCaptureFixture):
    report()
    write_down.enqueue()
    report("mail*")
    write_down.enqueue()
    assert warnings(caplog) == []


@pytest.mark.django_db
def test_nothing_is_said_and_nothing_asked_without_debug(settings: Any, caplog: pytest.LogCaptureFixture):
    settings.DEBUG = False
    write_down.enqueue()
    assert warnings(caplog) == []


@pytest.mark.django_db
def test_a_missing_table_is_told_with_the_command_to_type():
    def missing(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        return execute(sql.replace("helisched_job", "helisched_nowhere"), params, many, context)

    with (
        pytest.raises(NotMigrated, match=r"Run: python manage\.py migrate helisched$"),
        connection.execute_wrapper(missing),
    ):
        write_down.enqueue()


@pytest.mark.django_db
def test_a_taken_key_is_told_with_the_job_that_holds_it(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="django_helisched"):
        job = write_down.using(idempotency_key="invoice:17").enqueue()
        write_down.using(idempotency_key="invoice:17").enqueue()
    assert [record.getMessage() for record in caplog.records] == [
        f'A job with idempotency key "invoice:17" exists (#{job.pk.hex[-8:]}, pending). Returned it, enqueued nothing.'
    ]


@pytest.mark.django_db
def test_a_locked_file_is_told_with_the_mends():
    def locked(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        raise OperationalError("database is locked")

    with pytest.raises(OperationalError) as error, connection.execute_wrapper(locked):
        write_down.enqueue()
    assert "Keep transactions short" in error.value.__notes__[0]
