"""cron_jobs(): where a project's code declares its crons."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Unpack

from django_helisched.exceptions import InvalidOption

from .declaring import declare, interval
from .options import CronOptions, UtcOptions, checked_name, checked_number
from .providers import MAX_PROVIDER, Provider
from .refusals import declared_twice
from .spec import CronSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import timedelta

    from .cron import CronDeclaration
    from .declaring import Arguments, HasPath
    from .providers import Listing
    from .spec import Spec

_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


def cron_jobs() -> CronJobs:
    """Start a list of crons. Bind it to a name in a ``crons`` module, and it is found."""
    return CronJobs()


def collect(registries: Iterable[CronJobs]) -> CronJobs:
    """Join several lists in their order. Raise InvalidOption for a name that two of them use."""
    joined = CronJobs()
    for registry in registries:
        for declaration in registry.entries():
            joined.add(declaration)
        for provider in registry.providers():
            joined.add_provider(provider)
    return joined


class CronJobs:
    """Crons in the order of their declaration; every mistake is raised where it is written.

    ``fn`` is a registered function or its dotted path. ``args`` are its keyword arguments as
    a dict, or positional ones as a list. Options, and their defaults: ``catch_up``
    ("fire_once"), ``overlap`` ("allow"), ``max_failures``, ``queue`` and ``priority`` (the
    function's own), ``space`` (""), ``jitter`` (none), ``start`` and ``end`` (aware, inclusive),
    ``enabled`` (True); for interval() and cron() also ``tz``, which is the list's own where it is not given.
    """

    def __init__(self, *, tz: str = "UTC") -> None:
        self._tz = tz
        self._declarations: dict[tuple[str, str], CronDeclaration] = {}
        self._providers: dict[str, Provider] = {}

    def __iter__(self) -> Iterator[CronDeclaration]:
        """Go through what has been declared so far, in order."""
        return iter(self.entries())

    def entries(self) -> tuple[CronDeclaration, ...]:
        """Give what has been declared so far, in order."""
        return tuple(self._declarations.values())

    def add(self, declaration: CronDeclaration) -> None:
        """Take a finished declaration. Raise InvalidOption when its name is taken."""
        first = self._declarations.setdefault((declaration.space, declaration.name), declaration)
        if first is not declaration:
            raise declared_twice(declaration.name, first.origin, declaration.origin)

    def interval(
        self,
        name: str,
        every: timedelta | float,
        fn: HasPath | str,
        args: Arguments = None,
        **options: Unpack[CronOptions],
    ) -> None:
        """Fire every ``every``, a timedelta or seconds, in phase with ``start`` or the first deploy."""
        self._declare(name, lambda: interval(every), fn, args, {"tz": self._tz, **options})

    def cron(
        self, name: str, expr: str, fn: HasPath | str, args: Arguments = None, **options: Unpack[CronOptions]
    ) -> None:
        """Fire at the wall-clock times of a cron expression in the zone ``tz``."""
        self._declare(name, lambda: CronSpec(expr), fn, args, {"tz": self._tz, **options})

    def hourly(
        self, name: str, *, minute_utc: int, fn: HasPath | str, args: Arguments = None, **options: Unpack[UtcOptions]
    ) -> None:
        """Fire at one minute of every hour."""
        _refuse_zone("hourly", options)
        self._declare(name, lambda: CronSpec(f"{_minute(minute_utc)} * * * *"), fn, args, options)

    def daily(
        self,
        name: str,
        *,
        hour_utc: int,
        minute_utc: int,
        fn: HasPath | str,
        args: Arguments = None,
        **options: Unpack[UtcOptions],
    ) -> None:
        """Fire every day at one time of day in UTC."""
        _refuse_zone("daily", options)
        self._declare(name, lambda: CronSpec(f"{_time(hour_utc, minute_utc)} * * *"), fn, args, options)

    def weekly(  # the fields of the time have names
        self,
        name: str,
        *,
        day_of_week: str,
        hour_utc: int,
        minute_utc: int,
        fn: HasPath | str,
        args: Arguments = None,
        **options: Unpack[UtcOptions],
    ) -> None:
        """Fire on one weekday, "sunday" to "saturday", at one time of day in UTC."""
        _refuse_zone("weekly", options)
        self._declare(
            name, lambda: CronSpec(f"{_time(hour_utc, minute_utc)} * * {_weekday(day_of_week)}"), fn, args, options
        )

    def monthly(  # the fields of the time have names
        self,
        name: str,
        *,
        day: int,
        hour_utc: int,
        minute_utc: int,
        fn: HasPath | str,
        args: Arguments = None,
        **options: Unpack[UtcOptions],
    ) -> None:
        """Fire on one day of the month at one time of day in UTC; months without that day are left out."""
        _refuse_zone("monthly", options)
        self._declare(
            name,
            lambda: CronSpec(f"{_time(hour_utc, minute_utc)} {checked_number('day', day, 1, 31)} * *"),
            fn,
            args,
            options,
        )

    def provider(self, name: str, fn: Listing) -> None:
        """Derive crons from the project's own data: ``fn()`` yields ``(space, entries)`` for each space.

        It is asked at the start, every 15 minutes, and by ``scheduler.crons.reconcile()``.
        What one space raises is that space's alone; a space that is no longer yielded is
        archived. Raise InvalidOption for a name that is taken.
        """
        checked_name("the name of a provider", name, limit=MAX_PROVIDER)
        if not callable(fn):
            raise InvalidOption(f'The provider "{name}" must be a function, not {fn!r}.')
        self.add_provider(Provider(name=name, fn=fn, origin=_origin()))

    def add_provider(self, provider: Provider) -> None:
        """Take a finished provider. Raise InvalidOption when its name is taken."""
        first = self._providers.setdefault(provider.name, provider)
        if first is not provider:
            raise InvalidOption(
                f'The provider "{provider.name}" is declared twice, at {first.origin} and at {provider.origin}. '
                "Give one of them another name."
            )

    def providers(self) -> tuple[Provider, ...]:
        """Give the providers, in order."""
        return tuple(self._providers.values())

    def _declare(
        self, name: str, spec: Callable[[], Spec], fn: HasPath | str, args: Arguments, options: Mapping[str, Any]
    ) -> None:
        self.add(declare(name, spec, fn, args, options, origin=_origin()))


def _origin() -> str:
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _refuse_zone(method: str, options: Mapping[str, Any]) -> None:
    if "tz" in options:
        raise TypeError(f"{method}() takes its time in UTC and no tz; use cron(name, expr, fn, tz=...) instead.")


def _minute(minute_utc: int) -> int:
    return checked_number("minute_utc", minute_utc, 0, 59)


def _time(hour_utc: int, minute_utc: int) -> str:
    return f"{_minute(minute_utc)} {checked_number('hour_utc', hour_utc, 0, 23)}"


def _weekday(day_of_week: str) -> int:
    if day_of_week not in _WEEKDAYS:
        raise InvalidOption(f"day_of_week must be one of {', '.join(_WEEKDAYS)}, not {day_of_week!r}.")
    return _WEEKDAYS.index(day_of_week)
