"""manage.py runscheduler: its options, its banner, its exit codes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from django_helisched.models import Attempt, Cron, Job, Worker
from tests.app import jobs as bodies
from tests.app.models import Ledger

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    bodies.seen.clear()


def run(*options: str) -> tuple[str, str]:
    """Run the command here until it ends by itself, and return what it printed."""
    out, err = io.StringIO(), io.StringIO()
    call_command("runscheduler", *options, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def summary_of(*options: str) -> dict[str, Any]:
    out, _ = run("--once", *options)
    summary: dict[str, Any] = json.loads(out)
    return summary


@pytest.mark.parametrize("flag", ["--once", "--batch"])
def test_once_runs_what_is_due_prints_json_alone_and_stops(flag):
    for marker in "abc":
        bodies.write.enqueue(marker)
    later = bodies.write.run_after(3600, "later")
    out, err = run(flag)
    summary = json.loads(out)
    assert (summary["started"], summary["succeeded"], summary["failed"]) == (3, 3, 0)
    assert summary["worker"] == Worker.objects.get().id
    assert Ledger.objects.count() == 3
    later.refresh_from_db()
    assert later.state == "pending"
    assert "tests.app.jobs.write" in err


def test_once_leaves_retries_for_the_next_time():
    bodies.write_until.enqueue(2, "a")
    assert summary_of()["retried"] == 1
    assert not Ledger.objects.exists()


def test_the_banner_says_what_runs_and_how_to_stop_it():
    bodies.write.enqueue("a")
    out, _ = run("--max-tasks", "1", "--threads", "3", "--queue-name", "default,mail*", "--exclude-queues", "mail-slow")
    first, second, third, *_ = out.splitlines()
    assert first.startswith("helisched 0.1.0 | Python ")
    assert " | zone UTC" in first
    assert connection.display_name in first
    assert "queues: default, mail* but mail-slow | 3 threads + 100 async | worker " in second
    assert " functions in " in second
    assert "admin: /admin/helisched/   " in third
    assert "stop: Ctrl-C (finishes running jobs, twice = now)" in third


def test_every_job_that_starts_and_ends_has_a_line_without_its_arguments():
    bodies.write.enqueue("s3cr3t-argument")
    bodies.raise_this.using(max_failures=1).enqueue("NUL")
    out, _ = run("--max-tasks", "2", "--threads", "1")
    assert "tests.app.jobs.write " in out
    assert "waited" in out
    assert "ValueError: a \\x00 and a \\udcff   try 1/1, final" in out
    assert "s3cr3t-argument" not in out


def test_max_tasks_stops_after_so_many_jobs():
    for marker in "abc":
        bodies.write.enqueue(marker)
    run("--max-tasks", "2")
    assert Ledger.objects.count() == 2
    assert Job.objects.filter(state="pending").count() == 1


def test_only_the_named_queues_are_served():
    for queue in ("default", "mail", "mail-slow"):
        bodies.write.using(queue=queue).enqueue(queue)
    summary_of("--queue-name", "mail*", "--exclude-queues", "mail-slow")
    assert Ledger.objects.get().marker == "mail"


def test_the_worker_id_begins_as_told_and_ends_with_a_token():
    job = bodies.write.enqueue("a")
    summary_of("--worker-id", "web1")
    worker = Attempt.objects.get(job=job).worker_id
    assert worker.startswith("web1:")
    assert len(worker) > len("web1:")


def test_json_logs_are_one_object_a_line():
    bodies.write.enqueue("a")
    out, _ = run("--max-tasks", "1", "--json-logs")
    events = [json.loads(line) for line in out.splitlines()]
    names = [event["event"] for event in events]
    assert names[0] == "driver.ready"
    assert names[-1] == "driver.stopped"
    assert names.index("job.started") < names.index("job.succeeded")


def test_verbosity_zero_prints_warnings_only():
    bodies.write.enqueue("a")
    out, _ = run("--max-tasks", "1", "--verbosity", "0")
    assert out == ""


def test_threads_zero_fires_crons_and_runs_no_job():
    bodies.write.enqueue("a")
    summary = summary_of("--threads", "0")
    assert summary["started"] == 0
    assert not Ledger.objects.exists()


@override_settings(HELISCHED={"CRONS": ["tests.app.schedules.every_second"]})
def test_the_start_stores_the_declared_crons():
    summary_of()
    assert Cron.objects.get().name == "tick"


@override_settings(HELISCHED={"CRONS": ["tests.app.schedules.every_second"]})
def test_no_crons_leaves_them_to_other_processes():
    summary_of("--no-crons")
    assert not Cron.objects.exists()


@override_settings(HELISCHED={"CRONS": ["tests.app.schedules.every_second"]})
def test_rows_of_code_crons_are_kept_where_no_list_is_found():
    summary_of()
    with override_settings(HELISCHED={}):
        _, err = run("--once")
    assert Cron.objects.get().archived_at is None
    assert "no cron_jobs() list" in err


@override_settings(HELISCHED={"CRONS": ["tests.app.schedules.every_second"]})
def test_an_empty_list_archives_what_is_no_longer_declared():
    summary_of()
    Worker.objects.all().delete()
    with override_settings(HELISCHED={"CRONS": []}):
        summary_of()
    assert Cron.objects.get().archived_at is not None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--threads", "-1"], "--threads -1 must be 0 or more."),
        (["--max-tasks", "0"], "--max-tasks 0 must be 1 or more."),
        (["--interval", "0"], "--interval 0 must be more than zero seconds, and a day at most."),
        (["--interval", "nan"], "--interval nan must be more than zero seconds, and a day at most."),
        (["--queue-name", "ma*l"], 'The queue pattern "ma*l" has a * before its end; only "mail*" is understood.'),
        (
            ["--worker-id", "a\nb"],
            "--worker-id 'a\\nb' must be 1 to 100 printable characters; a token is put after it.",
        ),
    ],
)
def test_a_bad_option_is_one_sentence_and_exit_code_one(options, sentence):
    with pytest.raises(CommandError) as raised:
        run(*options)
    assert str(raised.value) == sentence
    assert raised.value.returncode == 1


@pytest.mark.parametrize(
    ("setting", "begin"),
    [
        ({"THREDS": 3}, "HELISCHED has no setting 'THREDS'. Did you mean \"THREADS\"?"),
        ({"CRONS": ["tests.app.schedules.gone"]}, 'HELISCHED["CRONS"] names "tests.app.schedules.gone"'),
        ({"CRONS": ["tests.app.jobs.write"]}, 'HELISCHED["CRONS"] names "tests.app.jobs.write", which is JobFunction'),
    ],
)
def test_a_bad_setting_is_one_sentence_and_exit_code_one(setting, begin):
    with override_settings(HELISCHED=setting), pytest.raises(CommandError) as raised:
        call_command("runscheduler", "--once", stdout=io.StringIO(), stderr=io.StringIO(), skip_checks=True)
    assert str(raised.value).startswith(begin)
    assert raised.value.returncode == 1


def test_missing_tables_are_exit_code_one_and_the_command_that_makes_them():
    with connection.schema_editor() as editor:
        editor.execute("ALTER TABLE helisched_worker RENAME TO helisched_worker_away")
    try:
        with pytest.raises(CommandError) as raised:
            run("--max-tasks", "1")
    finally:
        with connection.schema_editor() as editor:
            editor.execute("ALTER TABLE helisched_worker_away RENAME TO helisched_worker")
    assert "python manage.py migrate helisched" in str(raised.value)


def test_the_help_tells_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        call_command("runscheduler", "--help")
    text = " ".join(capsys.readouterr().out.split())
    assert "Exit codes: 0 stopped" in text
    assert "130 or 143" in text
