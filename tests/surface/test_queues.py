"""Queues paused and resumed by the API and from the command line, and their list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched import scheduler, wiring
from django_helisched.exceptions import InvalidOption
from django_helisched.management.arguments import this_person
from django_helisched.testing.clock import ManualClock
from tests.surface.admin.rows import new_job, new_worker
from tests.surface.asking import ask, data

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

queues = scheduler.queues
NOON = datetime(2027, 3, 26, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def clock() -> Iterator[ManualClock]:
    clock = ManualClock(NOON)
    with wiring.replaced(clock=clock):
        yield clock


def listed() -> dict[str, list[str]]:
    """Return the rows of the list by queue."""
    head, *rows = ask("queues")
    assert head.split() == ["queue", "due", "held", "running", "oldest", "due", "status"]
    return {row.split()[0]: row.split()[1:] for row in rows}


def test_a_queue_is_paused_and_resumed_by_the_api():
    queues.pause("mail", by="ada", reason="SMTP down", until=NOON + MINUTE)
    (pause,) = queues.paused()
    assert (pause.queue, pause.by, pause.reason, pause.until) == ("mail", "ada", "SMTP down", NOON + MINUTE)
    assert queues.resume("mail")
    assert not queues.resume("mail")
    assert not queues.paused()


@pytest.mark.parametrize(
    ("queue", "given", "sentence"),
    [
        ("", {}, "queue must not be empty."),
        ("m" * 101, {}, "queue is 101 characters long; at most 100 are kept."),
        ("a\nb", {}, "queue='a\\nb' must not begin or end with a blank or hold control characters."),
        ("mail", {"by": "x" * 151}, "by is 151 characters long; at most 150 are kept."),
        ("mail", {"reason": "x" * 301}, "reason is 301 characters long; at most 300 are kept."),
        ("mail", {"until": NOON}, f"until={NOON} has passed: the pause would be over before it began."),
        ("mail", {"until": datetime(2027, 3, 27)}, "has no time zone."),  # noqa: DTZ001
    ],
)
def test_what_no_pause_can_be_is_refused_in_one_sentence(queue, given, sentence):
    with pytest.raises(InvalidOption) as refused:
        queues.pause(queue, **given)
    assert sentence in str(refused.value)
    assert not queues.paused()


def test_the_list_counts_what_waits_runs_and_is_held_and_says_who_paused_it(clock):
    new_worker()
    for given in ({}, {"priority": 5}, {"state": "in_progress"}, {"hold": "overlap"}, {"next_run_at": NOON + MINUTE}):
        new_job(queue="mail", **given)
    new_job(queue="old", state="success")
    new_job(queue="running", state="in_progress")
    queues.pause("mail", by="ada", reason="SMTP down")
    clock.advance(5)
    rows = listed()
    assert " ".join(rows["mail"]) == "2 1 1 5 s paused by ada 5 s ago: SMTP down"
    assert rows["running"] == ["0", "0", "1", "running"]
    assert rows["default"][:3] == ["0", "0", "0"]
    assert "old" not in rows


def test_json_of_the_list_is_complete():
    new_job(queue="mail")
    queues.pause("mail", by="ada", until=NOON + MINUTE)
    (mail,) = [queue for queue in data("queues")["queues"] if queue["name"] == "mail"]
    assert mail == {
        "name": "mail",
        "due": 1,
        "held": 0,
        "running": 0,
        "oldest_due_at": "2027-03-26T12:00:00+00:00",
        "oldest_due_seconds": 0.0,
        "is_paused": True,
        "schedulers": 0,
        "paused_at": "2027-03-26T12:00:00+00:00",
        "paused_by": "ada",
        "reason": "",
        "until": "2027-03-26T12:01:00+00:00",
    }


def test_a_queue_that_nobody_serves_is_told():
    new_worker(queues=["mail"])
    new_job(queue="default")
    assert " ".join(listed()["default"]).endswith("served by no running scheduler")


def test_counts_end_somewhere():
    new_job(queue="mail")
    with CaptureQueriesContext(connection) as captured:
        ask("queues")
    counts = [query["sql"] for query in captured if "COUNT(" in query["sql"]]
    assert counts
    assert all("LIMIT 10000" in sql for sql in counts)


def test_pausing_says_who_and_until_when():
    new_job(queue="mail")
    assert ask("pause", "mail", "--reason", "SMTP down", "--until", "30m") == [
        'Paused "mail" until 2027-03-26 12:30:00 UTC: no job of it is started. Jobs that run go on.'
    ]
    (pause,) = queues.paused()
    assert (pause.by, pause.reason, pause.until) == (this_person(), "SMTP down", NOON + 30 * MINUTE)
    assert ask("resume", "mail") == ['Resumed "mail": its jobs are started again, those that waited first.']
    assert not queues.paused()


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("2027-03-26T14:00+01:00", NOON + 60 * MINUTE),
        ("2027-03-26 13:00", NOON + 60 * MINUTE),
        ("90", NOON + 90 * timedelta(seconds=1)),
        ("1.5h", NOON + 90 * MINUTE),
    ],
)
def test_an_end_is_a_time_or_a_duration(text, until):
    assert data("pause", "mail", "--until", text, "--by", "ada")["until"] == until.isoformat()


def test_a_pause_that_stops_nothing_is_told_with_the_queues_in_use():
    new_job(queue="mail")
    assert ask("pause", "of nobody")[1].startswith(
        "No live job, no cron and no registered function uses this queue (they use: "
    )
    assert data("pause", "mail")["is_used"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["resume", "mail"], 'The queue "mail" is not paused (paused are: none).'),
        (
            ["pause", "mail", "--until", "2027-01-01T00:00+00:00"],
            "has passed: the pause would be over before it began.",
        ),
        (["pause", "mail", "--until", "soon"], '"soon" is neither a time'),
        (["pause", "mail", "--until", "101d5x"], '"101d5x" is neither a time'),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words, sentence):
    with pytest.raises(CommandError) as refused:
        ask(*words)
    assert sentence in str(refused.value)
