"""Why a job does not run, in sentences; and where the pages say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_helisched.inspection import waiting
from django_helisched.inspection.waiting import Around
from django_helisched.jobs.ids import uuid7
from django_helisched.models import Job, Limit, Queue, Worker
from django_helisched.stores.base import WorkerReport
from tests.surface.admin.pages import LISTS, address, shown
from tests.surface.admin.rows import new_job, new_worker, now

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
START = "Nothing will run. In another terminal: python manage.py runscheduler"

UNKNOWN = (
    'Job names shop.jobs.old, which no running code has. It was left waiting ("unknown function"). '
    'Keep an alias: @action(aliases=["shop.jobs.old"]), or cancel it.'
)


def job(**given: Any) -> Job:
    return Job(**{"state": "pending", "kind": "action", "fn_path": "shop.jobs.old", "next_run_at": NOW, **given})


def worker(*queues: str, **given: Any) -> WorkerReport:
    return WorkerReport(**{"id": "web1:17", "started_at": NOW, "queues": queues, "seats": 4, **given})


def texts(job: Job, switch: Queue | None, workers: list[WorkerReport] | None, **more: Any) -> list[str]:
    around = Around(now=NOW, switch=switch, workers=workers, **more)
    return [reason.text for reason in waiting.reasons(job, around)]


def switch(**given: Any) -> Queue:
    return Queue(**{"name": "default", "paused_at": NOW - timedelta(minutes=5), "paused_by": "ada", **given})


@pytest.mark.parametrize(
    ("newest", "text"),
    [
        (None, f"No scheduler has ever reported. {START}"),
        (Worker(last_seen=NOW - timedelta(seconds=250)), f"No scheduler has reported for 4 min. {START}"),
        (Worker(last_seen=NOW - timedelta(hours=2), state="stopped"), f"The last scheduler stopped 2 h ago. {START}"),
        (Worker(), f"No scheduler has reported for –. {START}"),
    ],
)
def test_silence_says_since_when_and_how_to_end_it(newest, text):
    assert waiting.silence(newest, NOW) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"next_run_at": NOW + timedelta(minutes=2)}, "Runs in 2 min."),
        ({"next_run_at": NOW + timedelta(seconds=40), "attempts": 1}, "Runs again in 40 s (1 of 3 failures)."),
        (
            {"next_run_at": NOW + timedelta(seconds=40), "attempts": 1, "losses": 2, "last_error": "OSError: full"},
            "Runs again in 40 s (1 of 3 failures, lost with its worker 2 times: OSError: full).",
        ),
        ({"next_run_at": NOW + timedelta(seconds=40), "attempt_count": 1}, "Runs again in 40 s, as it asked."),
        (
            {"expires_at": NOW - timedelta(seconds=1)},
            "It was not to start after 2026-11-30 11:59:59 UTC: the next sweep of a scheduler fails it as expired.",
        ),
        ({"hold": "overlap"}, "Held: an earlier job of its cron has not ended."),
        ({"hold": "limit", "limit_key": "smtp"}, 'Held: the limit "smtp" is full.'),
        (
            {"hold": "unknown_function"},
            UNKNOWN,
        ),
        ({}, "Due: starts when a scheduler has a free seat (3 of 4 are taken)."),
        ({"next_run_at": None}, "Due: starts when a scheduler has a free seat (3 of 4 are taken)."),
    ],
)
def test_a_served_job_waits_for_one_reason(given, text):
    assert texts(job(**given), None, [worker(in_flight=3)]) == [text]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"reason": "SMTP down"}, "Held: queue paused by ada 5 min ago: SMTP down"),
        ({"paused_by": ""}, "Held: queue paused 5 min ago."),
        ({"until": NOW + timedelta(hours=1)}, "Held: queue paused by ada 5 min ago, until it resumes in 1 h."),
    ],
)
def test_a_paused_queue_says_who_paused_it_and_why(given, text):
    assert texts(job(), switch(**given), [worker()]) == [text]


def test_a_pause_that_ran_out_holds_nothing():
    over = switch(until=NOW - timedelta(minutes=1))
    assert "free seat" in texts(job(), over, [worker()])[0]


def test_a_queue_that_nobody_serves_names_those_that_are():
    (text,) = texts(job(queue="mails"), None, [worker("mail"), worker("default")])
    assert text == 'Queue "mails" is served by no running scheduler (they serve: default, mail). Did you mean "mail"?'


def test_every_reason_is_told_and_the_hardest_first():
    later = job(hold="overlap", next_run_at=NOW + timedelta(minutes=2))
    told = texts(later, switch(), [])
    assert [text.partition(" ")[0] for text in told] == ["Held:", "Held:", "Nobody", "Runs"]


def test_what_is_not_pending_waits_for_nothing():
    assert texts(job(state="success"), switch(), []) == []


def test_workers_that_cannot_be_read_are_not_called_missing():
    assert "Nobody" not in " ".join(texts(job(), None, None))


def test_what_will_expire_is_told_beside_the_reason():
    told = texts(job(expires_at=NOW + timedelta(minutes=2)), None, [worker()])
    assert told[1:] == ["It expires in 2 min: if it has not started by then, it fails."]


def test_a_job_behind_others_says_how_many_and_stops_counting_somewhere():
    assert texts(job(), None, [worker()], ahead=1)[0].startswith("Due, behind one job of its queue: starts when")
    assert texts(job(), None, [worker()], ahead=12)[0].startswith("Due, behind 12 jobs of its queue: ")
    assert texts(job(), None, [worker()], ahead=1001)[0].startswith("Due, behind more than 1000 jobs of its queue: ")


def test_a_full_limit_names_who_holds_it():
    first, second = uuid7(), uuid7()
    held = job(hold="limit", limit_key="smtp")
    told = texts(held, None, [worker()], limit=Limit(key="smtp", capacity=2), out=2, holders=[first, second])
    assert told == [f'Held: the limit "smtp" is full, 2 of 2 are out. Running: {first}, {second}.']


def test_a_free_slot_of_a_limit_is_told():
    told = texts(job(hold="limit", limit_key="smtp"), None, [worker()], limit=Limit(key="smtp", capacity=2), out=1)
    assert told == ['Due: the limit "smtp" has a free slot (1 of 2), taken at the next look.']


def test_a_job_with_a_limit_that_is_due_later_is_not_held():
    told = texts(job(hold="later", limit_key="smtp", next_run_at=NOW + timedelta(minutes=2)), None, [worker()])
    assert told == ["Runs in 2 min."]


def test_an_earlier_job_of_its_cron_is_named():
    first = uuid7()
    told = texts(job(hold="overlap"), None, [worker()], earlier=(first, "in_progress"))
    assert told == [f"Held: an earlier job of its cron has not ended ({first}, in_progress)."]


def test_a_queue_that_every_scheduler_excludes_is_served_by_nobody():
    (text,) = texts(job(queue="slow"), None, [worker("!slow", "!mail")])
    assert text.startswith('Queue "slow" is served by no running scheduler (they serve: all but slow and mail).')
    assert "free seat" in texts(job(), None, [worker("!slow")])[0]


def test_schedulers_that_stop_or_have_no_seats_run_nothing():
    stopping = "Every scheduler that serves its queue is stopping and takes nothing more."
    assert texts(job(), None, [worker(state="draining"), worker("mail")]) == [stopping]
    no_seats = "The schedulers that serve its queue have no seats: they only fire crons."
    assert texts(job(), None, [worker(seats=0), worker(state="draining")]) == [no_seats]
    assert "free seat" in texts(job(), None, [worker(seats=0), worker()])[0]


def test_a_function_that_no_scheduler_of_the_queue_has_is_named():
    unknown = "No running scheduler that serves its queue has shop.jobs.old: whoever takes it holds it back."
    elsewhere = worker("mail", functions=["shop.jobs.old"])
    assert texts(job(), None, [worker(functions=["shop.jobs.new"]), elsewhere]) == [unknown]
    assert "free seat" in texts(job(), None, [worker(functions=["shop.jobs.old"])])[0]


def test_a_hold_that_a_scheduler_is_about_to_lift_is_told():
    (text,) = texts(job(hold="unknown_function"), None, [worker(functions=["shop.jobs.old"])])
    assert text.startswith("Held: a scheduler without the function gave it back. web1:17 has it")


@pytest.mark.django_db
def test_every_page_says_that_no_scheduler_reports_and_falls_silent_when_one_does(operator, settings):
    settings.HELISCHED = {"LEASE": 30}
    urls = [*(address(f"{name}_changelist") for name in LISTS), address("job_change", new_job().pk)]
    for url in urls:
        assert f"No scheduler has ever reported. {START}" in shown(operator, url), url
    silent = new_worker(last_seen=now() - timedelta(minutes=4, seconds=5))
    for url in urls:
        assert f"No scheduler has reported for 4 min. {START}" in shown(operator, url), url
    Worker.objects.filter(pk=silent.pk).update(last_seen=now())
    for url in urls:
        assert "Nothing will run" not in shown(operator, url), url


@pytest.mark.django_db
def test_the_page_of_a_job_says_why_it_waits(operator):
    Queue.objects.create(name="mails", paused_at=now() - timedelta(minutes=5), paused_by="ada", reason="SMTP down")
    new_worker(queues=["mail"])
    page = shown(operator, address("job_change", new_job(queue="mails").pk))
    assert "Held: queue paused by ada 5 min ago: SMTP down" in page
    assert 'Did you mean "mail"?' in page


@pytest.mark.django_db
def test_a_worker_whose_queues_have_the_wrong_shape_serves_any_and_breaks_no_page(operator):
    new_worker(queues=7)
    assert "free seat" in shown(operator, address("job_change", new_job(queue="mails").pk))


@pytest.mark.django_db
def test_a_reason_of_a_pause_is_text_on_the_page_of_a_job(operator):
    Queue.objects.create(name="default", paused_at=now(), reason="<script>alert(1)</script>")
    body = operator.get(address("job_change", new_job().pk)).content.decode()
    assert "&lt;script&gt;alert(1)" in body
    assert "<script>alert(1)" not in body
