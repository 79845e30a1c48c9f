"""Durable jobs and crons for Django, in the database the project already has.

The names load lazily: importing this package needs no settings and no apps.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_helisched import scheduler
    from django_helisched.context import JobContext, current_job
    from django_helisched.exceptions import (
        BatchClosed,
        Busy,
        HelischedError,
        JobCanceled,
        LeaseLost,
        NonRetryable,
        RetryLater,
        UnknownFunction,
    )
    from django_helisched.functions import JobFunction, action, mutation
    from django_helisched.jobs.limit import Limit
    from django_helisched.scheduler.declarations import cron_jobs

__version__ = "0.1.0"

_HOMES = {
    "action": "functions",
    "mutation": "functions",
    "JobFunction": "functions",
    "Limit": "jobs.limit",
    "current_job": "context",
    "JobContext": "context",
    "cron_jobs": "scheduler.declarations",
    "BatchClosed": "exceptions",
    "Busy": "exceptions",
    "HelischedError": "exceptions",
    "JobCanceled": "exceptions",
    "LeaseLost": "exceptions",
    "NonRetryable": "exceptions",
    "RetryLater": "exceptions",
    "UnknownFunction": "exceptions",
}

__all__ = [
    "BatchClosed",
    "Busy",
    "HelischedError",
    "JobCanceled",
    "JobContext",
    "JobFunction",
    "LeaseLost",
    "Limit",
    "NonRetryable",
    "RetryLater",
    "UnknownFunction",
    "action",
    "cron_jobs",
    "current_job",
    "mutation",
    "scheduler",
]


def __getattr__(name: str) -> Any:
    if name == "scheduler":
        return _room("scheduler")
    if name in _HOMES:
        return getattr(_room(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _room(name: str) -> ModuleType:
    try:
        return import_module(f"django_helisched.{name}")
    except RuntimeError as error:
        if "INSTALLED_APPS" not in str(error):
            raise
        # Django's own sentence names a model that the reader has never heard of.
        from django.core.exceptions import ImproperlyConfigured

        raise ImproperlyConfigured(
            'django_helisched is imported, but it is not in INSTALLED_APPS. Add "django_helisched" to INSTALLED_APPS.'
        ) from error


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
