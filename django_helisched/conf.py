"""The settings: one dict, HELISCHED, whose every key has a default.

Numbers are seconds. Read at use, never at import; forgotten when a test changes
the setting.
"""

from __future__ import annotations

import difflib
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Bounds of adaptive polling: the shortest and the longest wait between two looks.

    ``net`` is the longest one where processes tell each other of what they store.
    """

    min: timedelta = timedelta(seconds=0.05)
    max: timedelta = timedelta(seconds=1)
    net: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The default delays between attempts, in seconds: see jobs.backoff."""

    initial: float = 0.25
    base: float = 2.0
    max: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How much is kept of the jobs that ended one way: by age, by number, by both; None: no bound."""

    age: timedelta | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long what is over is kept; see jobs.retention."""

    success: Keep = Keep(age=timedelta(days=7))
    failed: Keep = Keep(age=timedelta(days=30))
    canceled: Keep = Keep(age=timedelta(days=7))
    fires: timedelta | None = timedelta(days=30)
    workers: timedelta | None = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The effective settings; durations are timedeltas."""

    database: str = "default"
    lease: timedelta = timedelta(seconds=30)
    sweep: timedelta = timedelta(seconds=30)
    threads: int = 4
    async_jobs: int = 100
    async_orm: int = 8
    poll: Poll = Poll()
    max_failures: int = 3
    max_losses: int = 5
    backoff: Backoff = Backoff()
    timeout: timedelta | None = None
    timeout_grace: timedelta = timedelta(seconds=10)
    crons: tuple[str, ...] | None = None
    tz: str = "UTC"
    catchup_cap: int = 1000
    misfire_grace: timedelta = timedelta(seconds=60)
    unknown_grace: timedelta = timedelta(days=1)
    retention: Retention = Retention()
    key_ttl: timedelta = timedelta(days=7)
    max_args_bytes: int = 1024 * 1024
    job_log_level: int | None = logging.INFO
    app_version: str = ""


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the settings of this process.

    Raises ImproperlyConfigured with one sentence that names the key, the value
    and the mend.
    """
    given = getattr(django_settings, "HELISCHED", {})
    return parse_settings(given)


def parse_settings(given: Any) -> Settings:
    """Return ``given`` (the HELISCHED dict) over the defaults; raise ImproperlyConfigured."""
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured(f"HELISCHED must be a dict, not {type(given).__name__}.")
    values = {}
    for key, value in given.items():
        name = _known(key)
        try:
            values[name] = _PARSERS[name](value)
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(f'HELISCHED["{key}"] = {value!r}: {error}') from None
    return Settings(**values)


def _known(key: object) -> str:
    names = [item.name.upper() for item in fields(Settings)]
    if isinstance(key, str) and key in names:
        return key.lower()
    near = difflib.get_close_matches(str(key).upper(), names, n=1)
    hint = f' Did you mean "{near[0]}"?' if near else f" Known settings: {', '.join(names)}."
    raise ImproperlyConfigured(f"HELISCHED has no setting {key!r}.{hint}")


def duration(value: Any) -> timedelta:
    """Return ``value`` (a timedelta or a number of seconds) as a timedelta of zero or more."""
    if isinstance(value, bool) or not isinstance(value, timedelta | int | float):
        raise TypeError("a duration is a timedelta or a number of seconds.")
    parsed = value if isinstance(value, timedelta) else _seconds(value)
    if parsed < timedelta(0):
        raise ValueError("a duration must not be negative.")
    return parsed


def _seconds(value: float) -> timedelta:
    if not math.isfinite(value) or abs(value) > timedelta.max.total_seconds():
        raise ValueError("a duration must be a finite number of seconds.")
    return timedelta(seconds=value)


def _positive(value: Any) -> timedelta:
    parsed = duration(value)
    if not parsed:
        raise ValueError("it must be more than zero seconds.")
    return parsed


def _optional(parser: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else parser(value)


def _count(least: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("it must be a whole number.")
        if value < least:
            raise ValueError(f"it must be {least} or more.")
        return value

    return parse


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it must be a string.")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise TypeError("it must be a list of strings.")
    return tuple(_text(item) for item in value)


def _log_level(value: Any) -> int:
    level = logging.getLevelNamesMapping().get(value) if isinstance(value, str) else value
    if isinstance(level, bool) or not isinstance(level, int):
        raise TypeError('it must be the name of a log level, such as "INFO", or a number.')
    return level


def _backoff(value: Any) -> Backoff:
    if not isinstance(value, Mapping) or not set(value) <= {"initial", "base", "max"}:
        raise TypeError('it must be a dict with "initial", "base" and "max".')
    parsed = Backoff(**{key: duration(item).total_seconds() for key, item in value.items()})
    if parsed.base < 1:
        raise ValueError('"base" must be 1 or more.')
    return parsed


def _poll(value: Any) -> Poll:
    if not isinstance(value, Mapping) or not set(value) <= {"min", "max", "net"}:
        raise TypeError('it must be a dict with "min", "max" and "net".')
    poll = Poll(**{key: _positive(item) for key, item in value.items()})
    if poll.min > poll.max:
        raise ValueError('"min" must not be longer than "max".')
    return poll


def _keep(value: Any) -> Keep:
    if not isinstance(value, Mapping):
        return Keep(age=_optional(duration)(value))
    if not value or not set(value) <= {"age", "count"}:
        raise TypeError('what is kept of an outcome is a duration, None, or a dict with "age", "count" or both.')
    return Keep(age=_optional(duration)(value.get("age")), count=_optional(_count(0))(value.get("count")))


def _retention(value: Any) -> Retention:
    if value is None:
        return Retention(success=Keep(), failed=Keep(), canceled=Keep(), fires=None, workers=None)
    names = [item.name for item in fields(Retention)]
    if not isinstance(value, Mapping) or not set(value) <= set(names):
        raise TypeError(f"it must be None or a dict with some of: {', '.join(names)}.")
    parsers: dict[str, Callable[[Any], Any]] = dict.fromkeys(names, _keep)
    parsers |= dict.fromkeys(("fires", "workers"), _optional(duration))
    return Retention(**{key: parsers[key](item) for key, item in value.items()})


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "database": _text,
    "lease": _positive,
    "sweep": _positive,
    "threads": _count(0),
    "async_jobs": _count(0),
    "async_orm": _count(1),
    "poll": _poll,
    "max_failures": _count(1),
    "max_losses": _count(1),
    "backoff": _backoff,
    "timeout": _optional(_positive),
    "timeout_grace": _positive,
    "crons": _optional(_texts),
    "tz": _text,
    "catchup_cap": _count(1),
    "misfire_grace": duration,
    "unknown_grace": duration,
    "retention": _retention,
    "key_ttl": duration,
    "max_args_bytes": _count(1),
    "job_log_level": _optional(_log_level),
    "app_version": _text,
}


def _forget(*, setting: str, **_: object) -> None:
    if setting == "HELISCHED":
        get_settings.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_helisched.conf")
