"""What a job logs is kept with its attempt, and with nothing else."""

from __future__ import annotations

import io
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched import logging as job_logging
from django_helisched.driver import ThreadSeats
from django_helisched.logging import CurrentJobFilter, JobLogHandler
from tests.app import jobs as bodies
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_helisched.driver import Driver


@pytest.fixture(autouse=True)
def talkative() -> Iterator[None]:
    """Let the loggers of the test's bodies pass everything."""
    bodies.logger.setLevel(logging.DEBUG)
    yield
    bodies.logger.setLevel(logging.NOTSET)


def log_of(jobs: Any, job: Any, number: int = 1) -> list[str]:
    """Return the messages that the attempt has kept, without their heads."""
    text = jobs.attempts_of(job.id)[number - 1].log
    return [line.split(": ", 1)[-1] for line in text.split("\n") if line]


def test_a_line_says_when_how_grave_where_and_what(driver: Driver, jobs):
    job = bodies.log_lines.enqueue("one")
    driver.tick()
    (attempt,) = jobs.attempts_of(job.id)
    assert attempt.log.endswith(" INFO tests.app.jobs: one")
    assert attempt.log[:2] == "20"


def test_each_attempt_keeps_its_own_lines(driver: Driver, jobs):
    first, second = bodies.log_lines.enqueue("one", "two"), bodies.log_lines.enqueue("three")
    driver.tick()
    assert log_of(jobs, first) == ["one", "two"]
    assert log_of(jobs, second) == ["three"]


def test_jobs_that_run_at_the_same_time_never_mix(make_driver, jobs):
    driver = make_driver(seats=ThreadSeats(2))
    bodies.gates.update(a=threading.Event(), b=threading.Event())
    first, second = bodies.log_behind.enqueue("a", "first"), bodies.log_behind.enqueue("b", "second")
    driver.tick()
    wait_for(lambda: len(bodies.seen) == 2)
    bodies.logger.info("of nobody")
    for gate in "ba":
        bodies.gates[gate].set()
    driver.drain()
    assert log_of(jobs, first) == ["first before", "first after"]
    assert log_of(jobs, second) == ["second before", "second after"]


def test_what_awaited_code_tasks_and_to_thread_log_is_the_jobs_and_a_strange_threads_is_not(driver: Driver, jobs):
    job = bodies.log_everywhere.enqueue("a")
    driver.tick()
    assert log_of(jobs, job) == ["a awaited", "a task", "a thread", "a sync"]


def test_records_below_the_level_are_not_kept(make_driver, jobs):
    by_level = {level: bodies.log_at_all_levels.using(name=str(level)).enqueue() for level in (10, 20, 40)}
    driver = make_driver(job_log_level=logging.ERROR)
    driver.tick()
    assert log_of(jobs, by_level[10]) == ["ERROR"]


def test_by_default_info_is_kept_and_debug_is_not(driver: Driver, jobs):
    job = bodies.log_at_all_levels.enqueue()
    driver.tick()
    assert log_of(jobs, job) == ["INFO", "WARNING", "ERROR"]


def test_no_level_keeps_nothing(make_driver, jobs):
    job = bodies.log_at_all_levels.enqueue()
    before = list(logging.getLogger().handlers)
    driver = make_driver(job_log_level=None)
    driver.tick()
    assert logging.getLogger().handlers == before
    assert log_of(jobs, job) == []


def test_what_cannot_be_formatted_or_stored_costs_a_line_and_not_the_job(driver: Driver, jobs):
    # The handlers of the test runner would complain of it.
    bodies.logger.propagate = False
    handler = JobLogHandler()
    bodies.logger.addHandler(handler)
    try:
        job = bodies.log_badly.enqueue()
        driver.tick()
    finally:
        bodies.logger.propagate = True
        bodies.logger.removeHandler(handler)
    (attempt,) = jobs.attempts_of(job.id)
    lines = attempt.log.split("\n")
    assert attempt.outcome == "success"
    assert lines[0] == "<a record of tests.app.jobs could not be formatted: ValueError>"
    assert lines[1].endswith("a NUL \\x00, a \\udcff, postgres://ada:***@db/shop")
    assert lines[-1] == "django_helisched.exceptions.NonRetryable: it is over"


def test_each_attempt_has_a_log_of_its_own(driver: Driver, jobs, clock):
    job = bodies.log_and_fail.enqueue()
    driver.tick()
    clock.advance(60)
    driver.tick()
    assert [log_of(jobs, job, number) for number in (1, 2)] == [["attempt 1"], ["attempt 2"]]


def test_nothing_is_added_once_the_job_has_ended(driver: Driver, jobs):
    bodies.leave_a_logger_behind.enqueue()
    driver.tick()
    (log_late,) = bodies.seen
    log_late()


def test_a_handler_with_a_filter_of_its_own_takes_the_place_of_the_default(make_driver, jobs):
    handler = JobLogHandler("INFO")
    handler.addFilter(lambda record: "secret" not in record.getMessage())
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    bodies.logger.addHandler(handler)
    try:
        driver = make_driver()
        job = bodies.log_lines.enqueue("a secret", "no harm")
        driver.tick()
    finally:
        bodies.logger.removeHandler(handler)
    assert jobs.attempts_of(job.id)[0].log == "INFO no harm"


def test_the_handler_is_there_for_a_tick_that_runs_jobs_itself_and_not_longer(driver: Driver):
    before = list(logging.getLogger().handlers)
    bodies.log_lines.enqueue("one")
    driver.tick()
    assert logging.getLogger().handlers == before


def test_the_handler_goes_with_the_last_driver(make_driver):
    before = list(logging.getLogger().handlers)
    first, second = (make_driver(seats=ThreadSeats(1)) for _ in range(2))
    for driver in (first, second):
        driver.tick()
    assert len(logging.getLogger().handlers) == len(before) + 1
    first.close()
    assert len(logging.getLogger().handlers) == len(before) + 1
    second.close()
    second.close()
    assert logging.getLogger().handlers == before


def test_what_only_python_itself_would_have_printed_is_printed_still():
    """A handler on the root logger silences the last resort, on which small projects rely."""
    printed = io.StringIO()
    lonely = logging.getLogger("lonely")
    lonely.propagate = False
    heard = job_logging._Default(logging.INFO)
    lonely.addHandler(heard)
    lonely.setLevel(logging.DEBUG)
    last = logging.StreamHandler(printed)
    last.setLevel(logging.WARNING)
    before, logging.lastResort = logging.lastResort, last
    try:
        lonely.info("quiet")
        lonely.warning("loud")
        lonely.addHandler(logging.NullHandler())
        lonely.warning("heard by another")
    finally:
        logging.lastResort = before
        lonely.handlers.clear()
    assert printed.getvalue() == "loud\n"


def test_the_filter_names_the_job_in_every_record(driver: Driver, jobs):
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.addFilter(CurrentJobFilter())
    handler.setFormatter(logging.Formatter("%(job_id)s %(job_fn)s %(job_attempt)s %(message)s"))
    bodies.logger.addHandler(handler)
    try:
        job = bodies.log_lines.enqueue("inside")
        driver.tick()
        bodies.logger.info("outside")
        bodies.log_lines("a plain call")
    finally:
        bodies.logger.removeHandler(handler)
    assert lines.getvalue().splitlines() == [
        f"{job.id} tests.app.jobs.log_lines 1 inside",
        "- - - outside",
        "- - - a plain call",
    ]
