"""The crons that the project's code declares, wherever it declares them."""

from __future__ import annotations

import sys
from importlib import import_module

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string, module_has_submodule

from django_helisched import conf
from django_helisched.crons.registry import CronJobs, collect
from django_helisched.exceptions import HelischedError

_failures: dict[str, HelischedError] = {}


def cron_jobs() -> CronJobs:
    """Return a new list of crons, whose zone is HELISCHED["TZ"] where a cron names none."""
    return CronJobs(tz=conf.get_settings().tz)


def import_declarations() -> None:
    """Import the ``crons`` module of every installed app.

    A declaration that is refused is kept for ``find_declarations``: it stops a
    scheduler and is told by the system checks, but takes no web process down.
    """
    for app in apps.get_app_configs():
        if app.module is None or not module_has_submodule(app.module, "crons"):
            continue
        try:
            import_module(f"{app.name}.crons")
            _failures.pop(app.name, None)
        except HelischedError as error:
            _failures[app.name] = error


def refused_declarations() -> list[HelischedError]:
    """Return what the ``crons`` modules raised that could not be imported for it."""
    return list(_failures.values())


def find_declarations() -> CronJobs | None:
    """Return everything that is declared as one list; None where the project has no list at all.

    No list is not an empty list: nothing is known then, and rows are left as they
    are. Raises what a refused declaration raised, ImproperlyConfigured for a path
    that leads to no list, InvalidOption for a name that two lists use.
    """
    paths = conf.get_settings().crons
    if paths is not None:
        return collect(_named(path) for path in paths)
    for error in refused_declarations():
        raise error
    registries = _discovered()
    return collect(registries) if registries else None


def _discovered() -> list[CronJobs]:
    found: dict[int, CronJobs] = {}
    for app in apps.get_app_configs():
        # AppConfig.ready() has imported it.
        module = sys.modules.get(f"{app.name}.crons")
        for value in vars(module).values() if module is not None else ():
            if isinstance(value, CronJobs):
                found[id(value)] = value
    return list(found.values())


def _named(path: str) -> CronJobs:
    try:
        value = import_string(path)
    except ImportError as error:
        raise ImproperlyConfigured(f'HELISCHED["CRONS"] names "{path}", which cannot be imported: {error}.') from error
    if not isinstance(value, CronJobs):
        raise ImproperlyConfigured(
            f'HELISCHED["CRONS"] names "{path}", which is {type(value).__name__} and not a list made by cron_jobs().'
        )
    return value
