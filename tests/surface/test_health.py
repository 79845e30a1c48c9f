"""manage.py helisched health: unhealthy in every case in which nothing would run."""

from __future__ import annotations

import io
import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created

from django_helisched import scheduler, wiring
from django_helisched.inspection.health import Bounds, health
from django_helisched.models import Worker
from tests.surface.admin.rows import new_cron, new_job, new_worker, now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The question is asked by a thread of its own, which sees what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)


def asked(*words: str) -> tuple[int, str]:
    """Return the exit code and what was printed."""
    out = io.StringIO()
    try:
        call_command("helisched", "health", *words, stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


def codes(*words: str) -> list[str]:
    code, text = asked("--json", *words)
    answer = json.loads(text)
    assert answer["ok"] == (code == 0) == (not answer["problems"])
    return [problem["code"] for problem in answer["problems"]]


def test_a_live_scheduler_and_no_wait_is_healthy():
    new_worker(in_flight=1)
    code, text = asked()
    assert (code, text) == (0, "OK: 1 scheduler, 1 of 4 seats taken, no job waits, no cron is late.\n")


def test_no_scheduler_at_all_is_unhealthy():
    code, text = asked()
    assert code == 1
    assert text.splitlines() == [
        "UNHEALTHY",
        "  No scheduler has reported within 30 s. Start one: python manage.py runscheduler",
    ]


def test_a_scheduler_that_was_killed_is_healthy_while_its_row_is_fresh_and_unhealthy_then():
    worker = new_worker(last_seen=now() - timedelta(seconds=20))
    assert codes() == []
    assert codes("--max-age", "10s") == ["no_scheduler"]
    Worker.objects.filter(pk=worker.pk).update(last_seen=now() - MINUTE)
    assert codes() == ["no_scheduler"]
    assert codes("--max-age", "2m") == []


def test_schedulers_that_stopped_or_are_stopping_are_none():
    new_worker("gone", state="stopped")
    assert codes() == ["no_scheduler"]
    new_worker("going", state="draining")
    code, text = asked()
    assert code == 1
    assert "Every scheduler is stopping; none takes new jobs." in text


def test_a_job_that_waits_for_too_long_is_unhealthy():
    new_worker()
    new_job(next_run_at=now() - 11 * MINUTE)
    assert codes() == ["oldest_due"]
    assert codes("--max-wait", "1h") == []
    scheduler.queues.pause("default")
    assert codes() == []


def test_a_queue_that_nobody_serves_is_unhealthy_once_its_job_has_waited_for_a_lease():
    new_worker(queues=["!slow"])
    new_worker("crons only", seats=0)
    job = new_job(queue="slow", next_run_at=now() - timedelta(seconds=20))
    assert codes() == []
    type(job).objects.update(next_run_at=now() - MINUTE)
    code, text = asked()
    assert code == 1
    assert "Jobs are due in queues that no running scheduler serves: slow." in text


def test_crons_that_nobody_fires_are_unhealthy_and_named():
    new_worker()
    new_cron("fresh", next_run_at=now() - MINUTE)
    new_cron("paused", next_run_at=now() - 10 * MINUTE, paused_at=now())
    assert codes() == []
    for number in range(7):
        new_cron(f"late {number}", next_run_at=now() - 10 * MINUTE + timedelta(seconds=number))
    assert codes() == ["crons_late"]
    _, text = asked()
    assert "late 0, late 1, late 2, late 3, late 4 and 2 more." in text
    assert codes("--max-late", "1h") == []


def test_a_database_without_the_tables_is_unhealthy():
    with connection.schema_editor() as editor:
        editor.execute("ALTER TABLE helisched_worker RENAME TO helisched_worker_away")
    try:
        code, text = asked()
    finally:
        with connection.schema_editor() as editor:
            editor.execute("ALTER TABLE helisched_worker_away RENAME TO helisched_worker")
    assert code == 1
    assert "Run: python manage.py migrate helisched" in text


class Broken:
    """A store that answers nothing."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    def __getattr__(self, verb: str) -> Any:
        return lambda *args, **kwargs: self._answer()


def refuse() -> None:
    raise OperationalError("connection refused\nIs the server running?")


def test_a_database_that_refuses_is_unhealthy_in_one_line():
    with wiring.replaced(jobs=Broken(refuse)):
        code, text = asked()
    assert code == 1
    assert text == "UNHEALTHY\n  The database failed: OperationalError: connection refused\n"


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Give an event that comes when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_a_database_that_hangs_is_unhealthy_after_the_time_it_may_take(never: threading.Event):
    with wiring.replaced(jobs=Broken(never.wait)):
        code, text = asked("--timeout", "0.05s")
    assert code == 1
    assert text == "UNHEALTHY\n  The database did not answer within 0.05 s.\n"


def test_the_thread_that_asked_leaves_no_connection_open():
    opened: list[Any] = []

    def note(*, connection: Any, **_: Any) -> None:
        opened.append(connection)

    connection_created.connect(note)
    try:
        health(Bounds())
    finally:
        connection_created.disconnect(note)
    assert opened
    assert all(each.connection is None for each in opened)
