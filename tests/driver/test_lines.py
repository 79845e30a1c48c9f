"""What a person and a machine read of an event."""

from __future__ import annotations

import io
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from django_helisched.driver import console
from django_helisched.driver.events import CronEvent, DriverEvent, JobEvent, What, level_of
from django_helisched.driver.json_lines import JsonFormatter
from django_helisched.driver.lines import LineFormatter, line_of, spoken, when

JOB = UUID("01a22c55-8b70-7000-9e73-bf0b5f594441")
MOMENT = datetime(2026, 11, 30, 6, 30, tzinfo=UTC)


def job_event(what: What, **facts: Any) -> JobEvent:
    return JobEvent(
        what=what,
        job_id=JOB,
        fn_path="shop.jobs.send_receipt",
        queue="mail",
        attempt=2,
        **{"failures": 1, "max_failures": 3, **facts},
    )


def cron_event(what: What, **facts: Any) -> CronEvent:
    facts = {"next_run_at": MOMENT, **facts}
    return CronEvent(what=what, cron_id=JOB, name="morning", space="", tz="Europe/Berlin", **facts)


def record_of(event: Any, level: int | None = None) -> logging.LogRecord:
    record = logging.LogRecord("django_helisched.driver", level or level_of(event), "f", 1, "%s", (event,), None)
    record.event = event
    record.created = MOMENT.timestamp() + 0.0421
    return record


SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (job_event(What.JOB_STARTED, waited=timedelta(milliseconds=12)), "waited 12 ms"),
        (job_event(What.JOB_STARTED, waited=SECOND, late=timedelta(milliseconds=6)), "cron, 6 ms late"),
        (job_event(What.JOB_SUCCEEDED, ran=timedelta(milliseconds=61)), "61 ms, try 2/3"),
        (job_event(What.JOB_SUCCEEDED, ran=timedelta(milliseconds=61), failures=0), "61 ms"),
        (job_event(What.JOB_FAILED, text="Oops: no", failures=3), "Oops: no   try 3/3, final"),
        (job_event(What.JOB_RETRIED, text="Oops: no", retry_in=5 * SECOND), "Oops: no   try 1/3, again in 5 s"),
        (job_event(What.JOB_SNOOZED, ran=SECOND, retry_in=90 * SECOND), "1 s, again in 1 min 30 s, as it asked"),
        (job_event(What.JOB_CANCELED, ran=SECOND), "canceled after 1 s"),
        (job_event(What.JOB_LOST), "not this worker's any more: what it did here was dropped"),
        (job_event(What.JOB_SWEPT, text="worker w stopped reporting"), "worker w stopped reporting   final"),
        (job_event(What.JOB_RELEASED), "given back unrun"),
        (job_event(What.JOB_HELD, text="this code does not have it"), "this code does not have it"),
    ],
)
def test_a_line_names_the_job_and_says_what_happened(event: JobEvent, said: str):
    assert line_of(event) == f"{'#5f594441 shop.jobs.send_receipt':<44}  {said}"


NEXT = "next Mon 30 Nov 07:30:00 CET (06:30:00 UTC)"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (cron_event(What.CRON_FIRED, fired=1, late=timedelta(milliseconds=6)), f"fired 1, 6 ms late; {NEXT}"),
        (cron_event(What.CRON_MISSED, missed=4, text="too late"), f"4 missed: too late; {NEXT}"),
        (cron_event(What.CRON_PLANNED), NEXT),
        (cron_event(What.CRON_PLANNED, next_run_at=None), "next no further occurrence"),
        (cron_event(What.CRON_RACED), "another process was first"),
        (cron_event(What.CRON_PARKED, text="bad"), "does not fire any more until it is mended: bad"),
    ],
)
def test_a_line_names_the_cron_and_its_next_fire_in_its_own_zone(event: CronEvent, said: str):
    assert line_of(event) == f"{'cron morning':<44}  {said}"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0004, "0 ms"), (0.999, "999 ms"), (5, "5 s"), (5.25, "5.2 s"), (65, "1 min 5 s"), (7200, "2 h"), (-1, "0 ms")],
)
def test_durations_are_said_as_a_person_says_them(seconds: float, words: str):
    assert spoken(timedelta(seconds=seconds)) == words


def test_a_zone_that_is_gone_is_shown_in_utc():
    assert when(MOMENT, "Mars/Olympus") == "Mon 30 Nov 06:30:00 UTC"


def test_a_line_begins_with_time_and_symbol():
    line = LineFormatter(colour=False, ascii_only=False).format(record_of(job_event(What.JOB_SUCCEEDED, ran=SECOND)))
    assert line.startswith("06:30:00.042  ✓  #5f594441 shop.jobs.send_receipt")


def test_colour_is_put_around_the_symbol_only():
    line = LineFormatter(colour=True, ascii_only=False).format(record_of(job_event(What.JOB_FAILED, text="no")))
    assert line.startswith("06:30:00.042  \x1b[31m✗\x1b[0m  #5f594441")


def test_a_stream_that_is_not_utf8_gets_ascii():
    event = job_event(What.JOB_FAILED, text="Fehler: nö")
    line = LineFormatter(colour=False, ascii_only=True).format(record_of(event))
    assert line.isascii()
    assert "nö".encode("ascii", "backslashreplace").decode() in line


def test_an_error_cannot_move_the_cursor_or_begin_a_line():
    event = job_event(What.JOB_FAILED, text="a\x1b[2Jb\nc")
    line = LineFormatter(colour=False, ascii_only=False).format(record_of(event))
    assert "a\\x1b[2Jb\\nc" in line
    assert "\n" not in line


def test_a_plain_record_is_a_line_too_with_its_traceback():
    record = logging.LogRecord("django_helisched.driver", logging.ERROR, "f", 1, "it %s", ("broke",), None)
    try:
        dict[str, int]()["why"]
    except KeyError as error:
        record.exc_info = (KeyError, error, error.__traceback__)
    text = LineFormatter(colour=False, ascii_only=False).format(record)
    assert "  !  it broke\nTraceback" in text
    body = json.loads(JsonFormatter().format(record))
    assert (body["event"], body["text"], body["level"]) == ("log", "it broke", "ERROR")
    assert "KeyError" in body["traceback"]


def test_json_has_one_schema_for_all_events_of_jobs():
    keys = set()
    for what in (What.JOB_STARTED, What.JOB_FAILED, What.JOB_SWEPT):
        body = json.loads(JsonFormatter().format(record_of(job_event(what))))
        keys.add(tuple(body))
    assert len(keys) == 1
    event = job_event(What.JOB_RETRIED, ran=timedelta(milliseconds=64), retry_in=5 * SECOND, error_class="smtplib.E")
    body = json.loads(JsonFormatter().format(record_of(event)))
    assert body["ts"] == "2026-11-30T06:30:00.042Z"
    assert body["level"] == "WARNING"
    assert body["event"] == "job.retried"
    assert body["job"] == str(JOB)
    assert (body["ran_ms"], body["retry_in_s"], body["error"], body["cron"]) == (64, 5.0, "smtplib.E", None)


def test_json_tells_of_crons_and_of_the_process():
    body = json.loads(JsonFormatter().format(record_of(cron_event(What.CRON_FIRED, fired=2))))
    assert (body["event"], body["name"], body["fired"]) == ("cron.fired", "morning", 2)
    assert body["next_run_at"] == "2026-11-30T06:30:00+00:00"
    body = json.loads(JsonFormatter().format(record_of(DriverEvent(what=What.DRIVER_STOPPED, text="Stopped."))))
    assert (body["event"], body["text"]) == ("driver.stopped", "Stopped.")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "colour"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
    ],
)
def test_colour_is_for_terminals_unless_the_environment_says_otherwise(stream, environ, colour):
    assert console.has_colour(stream, environ) is colour


def test_symbols_are_for_utf8():
    assert console.is_ascii(io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert not console.is_ascii(io.TextIOWrapper(io.BytesIO(), encoding="UTF-8"))


def test_a_project_that_has_a_handler_keeps_it_alone():
    stream, own = io.StringIO(), logging.NullHandler()
    logger = logging.getLogger("django_helisched")
    logger.addHandler(own)
    try:
        with console.shown(stream) as is_shown:
            assert not is_shown
            assert logger.handlers == [own]
    finally:
        logger.removeHandler(own)


def test_lines_are_shown_inside_the_block_and_not_after_it():
    stream = io.StringIO()
    logger = logging.getLogger("django_helisched.driver")
    with console.shown(stream):
        logger.info("inside")
        logger.debug("too fine")
    logger.warning("after")
    assert "inside" in stream.getvalue()
    assert "after" not in stream.getvalue()
    assert "too fine" not in stream.getvalue()
