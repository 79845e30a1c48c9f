"""manage.py helisched why: what a job waits for, who runs it, how it ended."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched import scheduler, wiring
from django_helisched.inspection import surroundings
from django_helisched.inspection.why import why
from django_helisched.models import Job, Limit, Progress, Worker
from django_helisched.testing.clock import ManualClock
from tests.surface.admin.rows import new_attempt, new_cron, new_job, new_worker
from tests.surface.admin.test_damage import spoil
from tests.surface.asking import printed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

NOON = datetime(2027, 3, 26, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
UNSERVED = (
    'Queue "mail" is served by no running scheduler (they serve: default). '
    "Start one with --queue-name, or use a queue that is served."
)
UNKNOWN = (
    "Failed now, in attempt 1, which ran 0 ms on web1:17: no running code had the function "
    "tests.app.jobs.note for UNKNOWN_GRACE."
)


@pytest.fixture(autouse=True)
def clock() -> Iterator[ManualClock]:
    clock = ManualClock(NOON)
    with wiring.replaced(clock=clock):
        yield clock


def told(job: Job) -> list[str]:
    """Return the sentences about a job."""
    head, *lines = printed("why", str(job.pk)).splitlines()
    assert head.startswith(f"#{job.pk} ")
    return [line.strip() for line in lines]


def codes(job: Job) -> list[str]:
    return [reason["code"] for reason in why(str(job.pk)).data["reasons"]]


def test_a_job_that_nothing_holds_waits_for_a_seat_behind_those_that_go_first():
    new_worker(functions=["tests.app.jobs.note"])
    for given in ({"priority": 1}, {"next_run_at": NOON - SECOND}, {}):
        new_job(**given)
    job = new_job()
    for later in ({"priority": -1}, {"queue": "mail"}, {"hold": "overlap"}, {"next_run_at": NOON + SECOND}, {}):
        new_job(**later)
    assert told(job) == ["Due, behind 3 jobs of its queue: starts when a scheduler has a free seat (0 of 4 are taken)."]
    assert codes(job) == ["due"]


def test_the_count_of_those_before_ends_at_a_thousand():
    new_worker()
    moment = NOON - SECOND
    row = {"fn_path": "x", "kind": "action", "created_at": moment, "due_at": moment, "next_run_at": moment}
    Job.objects.bulk_create([Job(**row) for _ in range(1_010)])
    job = new_job()
    with CaptureQueriesContext(connection) as captured:
        around = surroundings.around(job)
    assert around.ahead == 1_001
    assert any("LIMIT 1001" in query["sql"] for query in captured)
    assert "behind more than 1000 jobs" in told(job)[0]


def test_everything_that_stands_in_the_way_is_told():
    scheduler.queues.pause("mail", by="ada", reason="SMTP down", until=NOON + timedelta(hours=1))
    new_worker(queues=["default"])
    job = new_job(queue="mail", attempts=1, last_error="OSError: full", next_run_at=NOON + 40 * SECOND)
    assert told(job) == [
        "Held: queue paused by ada now, until it resumes in 1 h: SMTP down",
        UNSERVED,
        "Runs again in 40 s (1 of 3 failures: OSError: full).",
    ]
    assert codes(job) == ["queue_paused", "queue_unserved", "retry"]


def test_nobody_runs_it_where_no_scheduler_lives():
    assert told(new_job()) == ["Nobody will run it: no scheduler is running."]


def test_a_job_that_waits_for_its_crons_earlier_one_names_it():
    new_worker()
    cron = new_cron()
    new_job(cron=cron, state="success")
    running = new_job(cron=cron, state="in_progress", overlap_key="c")
    waiting = new_job(cron=cron, hold="overlap", overlap_key="c")
    assert told(waiting) == [f"Held: an earlier job of its cron has not ended ({running.pk}, in_progress)."]


def test_a_job_that_waits_for_a_limit_names_the_running_ones():
    new_worker()
    Limit.objects.create(key="smtp", capacity=1, declared_at=NOON)
    new_job(state="in_progress", limit_key="other")
    running = new_job(state="in_progress", limit_key="smtp")
    waiting = new_job(hold="limit", limit_key="smtp")
    assert told(waiting) == [f'Held: the limit "smtp" is full, 1 of 1 are out. Running: {running.pk}.']


def test_a_running_job_says_since_when_by_whom_and_until_when_its_lease_holds(clock):
    new_worker("web1:17:ab")
    running = {"state": "in_progress", "lease_holder": "web1:17:ab", "timeout": timedelta(minutes=1)}
    job = new_job(**running, attempt_count=1)
    Progress.objects.create(job=job, fence=1, done=3, total=10, message="pages", updated_at=NOON)
    clock.advance(10)
    assert told(job) == [
        "Running for 10 s, attempt 2, by web1:17:ab.",
        "Its time limit ends in 50 s.",
        "Its lease ends in 20 s unless it is renewed.",
        "It says it has done 3 of 10: pages.",
    ]


def test_a_running_job_of_a_silent_worker_says_so(clock):
    new_worker("web1:17:ab")
    job = new_job(state="in_progress", lease_holder="web1:17:ab", cancel_requested_at=NOON)
    clock.advance(300)
    assert told(job) == [
        "Running for 5 min, attempt 1, by web1:17:ab.",
        "Its lease lapsed 4 min ago: unless it is renewed, a sweep takes the job back.",
        "Its worker was last heard of 5 min ago.",
        "Asked to stop 5 min ago; its worker learns of it with its next heartbeat.",
    ]
    Worker.objects.update(state="stopped")
    assert "Its worker stopped 5 min ago." in told(job)


def test_a_claimed_job_whose_body_has_not_begun_says_so():
    job = new_job(state="in_progress")
    Job.objects.update(started_at=None)
    assert told(job)[0] == "Taken by web1:17, attempt 1; its body has not begun."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"state": "success"}, "Succeeded now, in attempt 1, which ran 0 ms on web1:17."),
        ({"state": "canceled"}, "Canceled now, in attempt 1, which ran 0 ms on web1:17."),
        (
            {"state": "failed", "failure_reason": "exhausted", "attempts": 3},
            "Failed now, in attempt 1, which ran 0 ms on web1:17: its budget of failures is spent (3 of 3).",
        ),
        ({"state": "failed", "failure_reason": "unknown_function"}, UNKNOWN),
    ],
)
def test_a_finished_job_says_how_it_ended(given, sentence):
    job = new_job(**given)
    new_attempt(job)
    assert told(job)[0] == sentence


def test_a_failed_job_shows_its_error_and_a_canceled_one_that_never_ran_says_so():
    failed = new_job(state="failed", failure_reason="timeout", last_error="Timeout: 3 s")
    assert told(failed)[1] == "Its last error: Timeout: 3 s"
    assert told(new_job(state="canceled")) == ["Canceled now, before it ran."]


def test_every_failure_reason_has_a_sentence():
    from django_helisched.jobs.job import FailureReason

    for reason in FailureReason:
        assert f": {reason.value}." not in told(new_job(state="failed", failure_reason=reason.value))[0]


def test_json_holds_the_facts_and_the_reasons():
    new_worker()
    job = new_job(name="receipt 7", queue="mail", next_run_at=NOON + SECOND)
    answer = json.loads(printed("why", str(job.pk), "--json"))
    assert (answer["id"], answer["state"], answer["queue"]) == (str(job.pk), "pending", "mail")
    assert answer["next_run_at"] == "2027-03-26T12:00:01+00:00"
    assert answer["reasons"] == [{"code": "scheduled", "text": "Runs in 1 s."}]


def test_part_of_an_id_is_enough_where_no_other_job_has_it():
    one, other = new_job(), new_job()
    for text in (one.pk.hex[-8:], f"#{one.pk.hex[-8:]}", f"…{str(one.pk)[-12:]}", str(one.pk)[:35], one.pk.hex):
        assert why(text).data["id"] == str(one.pk), text
    with pytest.raises(CommandError, match="Several jobs have an id with"):
        printed("why", one.pk.hex[:8])
    assert one.pk.hex[:8] == other.pk.hex[:8]


@pytest.mark.parametrize("text", ["", "abc", "zzzzzzzz", "shop.jobs.send", "0" * 33, "%%%%"])
def test_what_is_no_id_is_told(text):
    with pytest.raises(CommandError, match="is not the id of a job, which is a UUID"):
        printed("why", text)


def test_a_job_that_is_not_there_is_told():
    gone = "01989898-0000-7000-8000-000000000000"
    with pytest.raises(CommandError, match=f'No job has the id "{gone}": it was never stored, was rolled back, or was'):
        printed("why", gone)
    with pytest.raises(CommandError, match='No job has an id that begins with "0198", nor ends so'):
        printed("why", "0198")


def test_a_damaged_row_says_that_it_is_damaged():
    unreadable = {"sqlite": "2026-99-99 00:00:00", "postgresql": "infinity", "mysql": "0000-00-00 00:00:00"}
    job = new_job()
    spoil(job, "next_run_at", unreadable[connection.vendor])
    damaged, nothing = (
        "This row is damaged: next_run_at cannot be read.",
        "Nobody will run it: no scheduler is running.",
    )
    # What MySQL's client cannot read it gives out as nothing.
    assert told(job) == [nothing if connection.vendor == "mysql" else damaged]


def test_the_answer_reads_rows_by_index_and_few_times(django_assert_max_num_queries: Any):
    new_worker()
    job = new_job()
    with django_assert_max_num_queries(8):
        why(str(job.pk))
