from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_models_have_no_change_without_a_migration(capsys):
    call_command("makemigrations", check=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out


def test_system_checks_find_nothing_to_say():
    call_command("check", fail_level="INFO")


@pytest.mark.django_db
def test_system_checks_that_ask_the_database_find_nothing_to_say():
    call_command("check", databases=["default"], fail_level="INFO")


def test_package_can_be_imported_before_django_has_settings():
    env = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import django_helisched"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_public_names_are_all_there():
    import django_helisched

    missing = [name for name in django_helisched.__all__ if not hasattr(django_helisched, name)]
    assert not missing


WEB_PROCESS = """
import sys
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_helisched"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()
from django_helisched import action, cron_jobs, scheduler
from django_helisched.functions.call import enqueue_calls
scheduler.crons
ours = ("driver", "stores.memory", "admin", "testing", "management")
unwanted = ("croniter", "dateutil", *(f"django_helisched.{room}" for room in ours))
print([name for name in sys.modules if name in unwanted or name.startswith(tuple(f"{each}." for each in unwanted))])
"""


PROCESS_WITHOUT_JOBS = (
    WEB_PROCESS.partition("django.setup()")[0]
    + """
django.setup()
from django_helisched import action
unwanted = ("stores.base", "stores.orm", "scheduler", "functions.call", "jobs.job", "jobs.outcome", "crons.cron")
unwanted = [f"django_helisched.{name}" for name in unwanted]
print([name for name in unwanted if name in sys.modules])
"""
)


PROCESS_THAT_ENQUEUES = (
    WEB_PROCESS.partition("django.setup()")[0]
    + """
django.setup()
from django.core.management import call_command
from django_helisched import mutation, scheduler
call_command("migrate", verbosity=0)
loaded = set(sys.modules)
@mutation
def work() -> None: ...
scheduler.enqueue(work)
work.enqueue()
unwanted = ("scheduler.crons", "crons.expression", "crons.backfill", "stores.orm.crons", "stores.orm.firing")
unwanted = [f"django_helisched.{name}" for name in unwanted]
print([name for name in unwanted if name in set(sys.modules) - loaded])
"""
)


def said_by(code: str) -> str:
    """Return what a process of its own prints, in which nothing is configured and a warning is an error."""
    env = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_a_process_that_only_declares_functions_imports_no_store():
    assert said_by(PROCESS_WITHOUT_JOBS) == "[]"


def test_a_process_that_enqueues_imports_no_crons():
    assert said_by(PROCESS_THAT_ENQUEUES) == "[]"


def test_a_web_process_imports_nothing_that_only_a_scheduler_needs():
    assert said_by(WEB_PROCESS) == "[]"
