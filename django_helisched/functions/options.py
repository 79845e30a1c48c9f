"""The options of one enqueue, and the checks of every value a caller hands over."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from django_helisched import conf
from django_helisched.exceptions import InvalidOption
from django_helisched.jobs import payload
from django_helisched.jobs.words import PRIORITY_MAX, PRIORITY_MIN, UniqueUntil
from django_helisched.stores.clock import cut

if TYPE_CHECKING:
    from types import EllipsisType
    from uuid import UUID

    from django_helisched.functions.function import JobFunction
    from django_helisched.models import Batch, Job

UNSET: Final = ...  # "not given": None is a value for some options

Duration = timedelta | float | int

_UNIQUE_UNTIL = frozenset(str(word) for word in UniqueUntil)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What a caller may set for one job; UNSET keeps the function's own value."""

    max_failures: int | None = None
    name: str = ""
    idempotency_key: str | None = None
    unique_until: str = UniqueUntil.PRUNED.value
    queue: str | None = None
    priority: int | None = None
    on_complete: JobFunction[Any, Any] | str | None = None
    context: Any = None
    space: str = ""
    expires_at: datetime | None = None
    parent: Job | UUID | str | EllipsisType | None = UNSET
    batch: Batch | UUID | str | EllipsisType | None = UNSET

    def given(self) -> Chosen:
        """Return the options that differ from their defaults."""
        values = {name: getattr(self, name) for name in _DEFAULTS}
        return cast("Chosen", {name: value for name, value in values.items() if value is not _DEFAULTS[name]})


class Chosen(TypedDict, total=False):
    """The keywords of ``using()``, so that a wrong one is a type error; JobOptions holds what they mean."""

    max_failures: int | None
    name: str
    idempotency_key: str | None
    unique_until: str
    queue: str | None
    priority: int | None
    on_complete: JobFunction[Any, Any] | str | None
    context: Any
    space: str
    expires_at: datetime | None
    parent: Job | UUID | str | EllipsisType | None
    batch: Batch | UUID | str | EllipsisType | None


NO_OPTIONS: Final = JobOptions()  # of whoever gives none: known by identity, there is nothing to check

_DEFAULTS = {item.name: item.default for item in fields(JobOptions)}


def check_duration(value: Any, name: str, *, at: str = "enqueue") -> timedelta:
    """Return ``value`` (a timedelta or seconds) as a timedelta; raise InvalidOption for a negative one."""
    try:
        return conf.duration(value)
    except (TypeError, ValueError) as error:
        nothing = " Nothing was enqueued." if at == "enqueue" else ""
        raise InvalidOption(f"{name}={value!r}: {error}{nothing}") from None


def check_instant(value: Any, name: str) -> datetime:
    """Return an aware ``value`` in UTC, cut to milliseconds; raise InvalidOption for anything else."""
    if not isinstance(value, datetime):
        raise InvalidOption(f"{name}={value!r} is not a datetime. Nothing was enqueued.")
    if value.utcoffset() is None:
        raise InvalidOption(
            f"{name}={value!r} has no time zone. Use django.utils.timezone.make_aware(...) "
            "or pass tzinfo=. Nothing was enqueued."
        )
    try:
        return cut(value)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC, microsecond=999000)


def check_text(value: Any, name: str, limit: int, *, blank: bool = True) -> str:
    """Return a name that every database stores and compares alike; raise InvalidOption otherwise."""
    if not isinstance(value, str):
        raise InvalidOption(f"{name}={value!r} must be a string.")
    if not value and blank:
        return ""
    try:
        payload.check_text(value, name)
    except payload.NotJson as error:
        raise InvalidOption(f"{error}.") from None
    if len(value) > limit:
        raise InvalidOption(f"{name} is {len(value)} characters long; at most {limit} are kept.")
    if any(ord(character) < 32 for character in value) or value != value.strip():
        raise InvalidOption(f"{name}={value!r} must not begin or end with a blank or hold control characters.")
    if not value and not blank:
        raise InvalidOption(f"{name} must not be empty.")
    return value


def check_priority(value: Any) -> int:
    """Return a whole number of PRIORITY_MIN..PRIORITY_MAX; raise InvalidOption otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not PRIORITY_MIN <= value <= PRIORITY_MAX:
        raise InvalidOption(f"priority={value!r} must be a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}.")
    return value


def check_max_failures(value: Any, *, at_most_once: bool) -> int:
    """Return a budget of 1 or more; an at-most-once function takes no other than 1 (TypeError)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidOption(f"max_failures={value!r} must be a whole number of 1 or more.")
    if at_most_once and value != 1:
        raise TypeError(f"max_failures={value} does not go with at_most_once=True, which fixes it at 1; leave it out.")
    return value


def check_flag(value: Any, name: str) -> bool:
    """Return True or False; raise InvalidOption for anything that only behaves like one."""
    if not isinstance(value, bool):
        raise InvalidOption(f"{name}={value!r} must be True or False.")
    return value


def check_unique_until(value: Any) -> str:
    """Return "pruned" or "terminal"; raise InvalidOption otherwise."""
    if value not in _UNIQUE_UNTIL:
        raise InvalidOption(f'unique_until={value!r} must be "pruned" or "terminal".')
    return str(value)
