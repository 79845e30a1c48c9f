"""What a scheduler says of itself when it starts."""

from __future__ import annotations

import platform
from contextlib import suppress
from typing import TYPE_CHECKING

import django
from django.apps import apps
from django.conf import settings
from django.db import Error, connections
from django.urls import NoReverseMatch, reverse

import django_helisched
from django_helisched import functions
from django_helisched.scheduler.declarations import find_declarations

if TYPE_CHECKING:
    from django_helisched.driver.config import DriverConfig


def banner(config: DriverConfig, *, separator: str = "·", processes: int | None = None) -> list[str]:
    """Return the lines above the first job: versions, what is served, where to look, how to stop.

    ``processes``: of how many of them, for their supervisor, who connects to no database.
    """
    first = [
        f"helisched {django_helisched.__version__}",
        f"Python {platform.python_version()}",
        f"Django {django.get_version()}",
        database_name(config.database) if processes is None else connections[config.database].display_name,
        f"zone {settings.TIME_ZONE}",
    ]
    second = [_functions(), _crons(config), _queues(config), _seats(config)]
    second.append(f"worker {config.worker_id}" if processes is None else _count(processes, "process"))
    admin = admin_address()
    last = [f"admin: {admin}"] if admin else []
    last.append("stop: Ctrl-C (finishes running jobs, twice = now)")
    joint = f" {separator} "
    return [joint.join(first), "  " + joint.join(second), "  " + "   ".join(last)]


def database_name(alias: str) -> str:
    """Return the database's product and version, the product alone while it does not answer."""
    connection = connections[alias]
    try:
        version = ".".join(str(part) for part in connection.get_database_version())
    except (Error, NotImplementedError):
        return connection.vendor
    return f"{connection.display_name} {version}"


def admin_address() -> str:
    """Return the path under which the admin shows the app, or "" where it is not installed.

    A path and no address: this process knows neither the web server's host nor its port.
    """
    if not apps.is_installed("django.contrib.admin"):
        return ""
    with suppress(NoReverseMatch):
        return reverse("admin:app_list", args=["helisched"])
    return ""


def _functions() -> str:
    known = functions.registered()
    modules = {path.rpartition(".")[0] for path in known}
    return f"{_count(len(known), 'function')} in {_count(len(modules), 'module')}"


def _crons(config: DriverConfig) -> str:
    if not config.fire_crons:
        return "crons off"
    declared = find_declarations()
    return _count(0 if declared is None else len(declared.entries()), "cron")


def _queues(config: DriverConfig) -> str:
    served = ", ".join(config.queues.include) or "all"
    return f"queues: {served}" + (f" but {', '.join(config.queues.exclude)}" if config.queues.exclude else "")


def _seats(config: DriverConfig) -> str:
    seats = [_count(config.threads, "thread")] if config.threads else []
    if config.async_jobs:
        seats.append(f"{config.async_jobs} async")
    return " + ".join(seats) or "no seats: jobs are run elsewhere"


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
