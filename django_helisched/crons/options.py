"""The options of a declaration, checked one by one. Each message says what would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, TypedDict

from django_helisched.exceptions import InvalidOption

from .cron import CatchUp, Overlap

if TYPE_CHECKING:
    from enum import StrEnum

# The room that the columns have.
MAX_NAME = 150
MAX_QUEUE = MAX_SPACE = 100
MAX_PATH = 255
MAX_PRIORITY = 100
MAX_FAILURES = 2**31 - 1
# Deeper values overflow the parsers that read them back.
_MAX_DEPTH = 200


class UtcOptions(TypedDict, total=False):
    """What every cron may declare beside its schedule."""

    catch_up: str
    overlap: str
    max_failures: int | None
    queue: str | None
    priority: int | None
    space: str
    jitter: timedelta | float
    start: datetime | None
    end: datetime | None
    enabled: bool


class CronOptions(UtcOptions, total=False):
    """What an interval or a cron expression may declare: the zone too."""

    tz: str


def checked_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Give the options as a declaration stores them. Raise InvalidOption for a bad value."""
    checked = {name: _CHECKS[name](name, value) for name, value in given.items()}
    start, end = checked.get("start"), checked.get("end")
    if start is not None and end is not None and start >= end:
        raise InvalidOption(f"start ({start}) must be before end ({end}).")
    return checked


def checked_number(name: str, value: Any, low: int, high: int) -> int:
    """Give a whole number from ``low`` to ``high``."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidOption(f"{name} must be a whole number from {low} to {high}, not {value!r}.")
    return value


def checked_duration(name: str, value: Any) -> timedelta:
    """Give a timedelta, or a number of seconds, as a timedelta of zero or more."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            value = timedelta(seconds=value)
        except (OverflowError, ValueError):
            value = None
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise InvalidOption(f"{name} must be a timedelta or a number of seconds, zero or more.")
    return value


def checked_name(name: str, value: Any, *, limit: int = MAX_NAME, blank: bool = False) -> str:
    """Give a name that every database stores as it is: printable, without blanks around it."""
    if not isinstance(value, str) or len(value) > limit:
        raise InvalidOption(f"{name} must be a text of at most {limit} characters, not {str(value)[:limit]!r}.")
    if (not value and not blank) or value != value.strip() or not value.isprintable():
        raise InvalidOption(f"{name} ({value!r}) must be printable, not empty, and without blanks at its ends.")
    return value


def checked_arguments(args: Any) -> tuple[list[Any], dict[str, Any]]:
    """Take a dict as keyword arguments, a list or tuple as positional ones, None as none.

    Give them as JSON gives them back. Raise InvalidOption for what JSON would change.
    """
    if args is None:
        return [], {}
    if isinstance(args, Mapping):
        return [], _as_stored(args)
    if isinstance(args, list | tuple):
        return _as_stored(args), {}
    raise InvalidOption(f"args must be a dict of keyword arguments, a list of positional ones, or None, not {args!r}.")


def _as_stored(value: Any, depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        raise InvalidOption(f"args are nested deeper than {_MAX_DEPTH} levels.")
    if isinstance(value, Mapping):
        return {_key(key): _as_stored(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_stored(item, depth + 1) for item in value]
    return _scalar(value)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise InvalidOption(f"args have the key {key!r}; JSON makes every key a text, so write a text.")
    return _text(key)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and isfinite(value):
        return float(value)
    raise InvalidOption(f"args hold {value!r}, which JSON cannot; pass text, numbers, lists and dicts.")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidOption("args hold a lone surrogate, which is no text.") from error
    if "\x00" in value:
        raise InvalidOption("args hold a NUL character, which not every database stores.")
    return str(value)


def _choice(kind: type[StrEnum], name: str, value: Any) -> StrEnum:
    try:
        return kind(value)
    except ValueError as error:
        raise InvalidOption(f"{name} must be one of {', '.join(kind)}, not {value!r}.") from error


def _instant(name: str, value: Any) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidOption(f"{name} must be an aware datetime, not {value!r}.")
    in_utc = value.astimezone(UTC)
    return in_utc.replace(microsecond=in_utc.microsecond // 1000 * 1000)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidOption(f"{name} must be True or False, not {value!r}.")
    return value


def _optional(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else check(name, value)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "catch_up": partial(_choice, CatchUp),
    "overlap": partial(_choice, Overlap),
    "max_failures": _optional(partial(checked_number, low=1, high=MAX_FAILURES)),
    "queue": _optional(partial(checked_name, limit=MAX_QUEUE)),
    "priority": _optional(partial(checked_number, low=-MAX_PRIORITY, high=MAX_PRIORITY)),
    "space": partial(checked_name, limit=MAX_SPACE, blank=True),
    "jitter": checked_duration,
    "start": _optional(_instant),
    "end": _optional(_instant),
    "enabled": _flag,
    "tz": checked_name,
}
