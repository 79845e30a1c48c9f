"""System checks of declared crons: the file, the line, and the mend; and what a refused one stops."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.checks import ERROR, INFO, WARNING
from django.test import override_settings

from django_helisched import cron_jobs
from django_helisched.checks import check_crons
from tests.app import schedules
from tests.app.jobs import note, once

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.core.checks import CheckMessage

    from django_helisched.crons.registry import CronJobs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def messages_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[CheckMessage]]:
    """Give the check's answer to lists of crons that a project declares."""

    def messages_of(*lists: CronJobs) -> list[CheckMessage]:
        for number, each in enumerate(lists):
            monkeypatch.setattr(schedules, f"list_{number}", each, raising=False)
        paths = [f"tests.app.schedules.list_{number}" for number in range(len(lists))]
        with override_settings(HELISCHED={"CRONS": paths}):
            return check_crons()

    return messages_of


def test_good_declarations_have_no_message(messages_of):
    crons = cron_jobs()
    crons.cron("a", "0 9 * * mon-fri", note, ["x"])
    crons.interval("b", 5, note, {"mark": 1})
    assert messages_of(crons) == []


def test_without_any_list_there_is_nothing_to_check():
    assert check_crons() == []


@pytest.mark.parametrize(
    ("fn", "args", "options", "ident", "level", "words"),
    [
        (note, {"nope": 1}, {}, "helisched.E013", ERROR, ['got an unexpected argument "nope"', "(it takes: mark)"]),
        (note, None, {}, "helisched.E013", ERROR, ["missing a required argument", "mark"]),
        (once, ["x"], {"max_failures": 3}, "helisched.E013", ERROR, ["at_most_once=True", "leave it out"]),
        ("tests.app.jobs.notee", ["x"], {}, "helisched.W011", WARNING, ["tests.app.jobs.notee", "Did you mean"]),
    ],
)
def test_what_could_never_run_is_told_with_its_place(messages_of, fn, args, options, ident, level, words):
    crons = cron_jobs()
    crons.interval("digest", 60, fn, args, **options)
    [message] = messages_of(crons)
    assert (message.id, message.level) == (ident, level)
    assert message.msg.startswith(f'The cron "digest" at {__file__}:')
    assert all(word in message.msg for word in words), message.msg


@pytest.mark.parametrize(
    ("expr", "ident", "level", "words"),
    [
        ("*/10 * * * * *", "helisched.W010", WARNING, "fires 6 times in each minute"),
        ("0 9 1 * mon", "helisched.I010", INFO, "every day that matches one of them"),
        ("*/90 * * * *", "helisched.I010", INFO, "wider than its range"),
    ],
)
def test_what_is_easily_meant_otherwise_is_told(messages_of, expr, ident, level, words):
    crons = cron_jobs()
    crons.cron("digest", expr, note, ["x"])
    [message] = messages_of(crons)
    assert (message.id, message.level) == (ident, level)
    assert words in message.msg
    assert f"{__file__}:" in message.msg


def test_a_name_that_two_lists_use_is_told_with_both_places(messages_of):
    one, two = cron_jobs(), cron_jobs()
    one.interval("digest", 60, note, ["x"])
    two.interval("digest", 60, note, ["x"])
    [message] = messages_of(one, two)
    assert message.id == "helisched.E012"
    assert message.msg.count(f"{__file__}:") == 2


def test_a_setting_that_leads_nowhere_is_told():
    with override_settings(HELISCHED={"CRONS": ["tests.app.nowhere.crons"]}):
        [message] = check_crons()
    assert message.id == "helisched.E010"
    with override_settings(HELISCHED={"LEASE": "x"}):
        assert check_crons() == []


def test_a_zone_of_the_settings_that_is_none_is_told():
    with override_settings(HELISCHED={"TZ": "Mars/Base", "CRONS": []}):
        [message] = check_crons()
    assert message.id == "helisched.E014"
    assert "Mars/Base" in message.msg


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Give a project whose app declares a cron that is refused; it types a manage.py command."""
    app = tmp_path / "shop"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "crons.py").write_text(
        "from django_helisched import cron_jobs\n"
        "crons = cron_jobs()\n"
        'crons.cron("digest", "0 25 * * *", "shop.jobs.digest")\n'
    )
    (tmp_path / "shop_settings.py").write_text(
        "from tests.settings import *\n"
        'INSTALLED_APPS = [*INSTALLED_APPS, "shop"]\n'
        f'DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": r"{tmp_path}/db.sqlite3"}}}}\n'
    )
    env: dict[str, Any] = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "shop_settings",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
    }

    def manage(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "django", *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=tmp_path)

    return manage


def test_a_refused_declaration_is_told_by_check_stops_a_scheduler_and_no_web_process(project):
    told = project("check")
    assert told.returncode == 1
    assert "helisched.E011" in told.stderr
    assert 'crons.py:3: "0 25 * * *"' in told.stderr
    assert "Traceback" not in told.stderr
    started = project("runscheduler", "--once", "--skip-checks")
    assert started.returncode == 1
    assert 'The cron "digest" at ' in started.stderr
    assert "Traceback" not in started.stderr
    assert project("shell", "-c", "import django.core.handlers.wsgi as w; w.WSGIHandler()").returncode == 0
