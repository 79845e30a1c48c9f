"""Make a declaration of a cron from what people write; whatever is wrong with it is said in one sentence."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from django_helisched.exceptions import InvalidOption

from .cron import CronDeclaration
from .options import MAX_PATH, CronOptions, checked_arguments, checked_duration, checked_name, checked_options
from .refusals import InvalidSchedule
from .spec import CronSpec, IntervalSpec
from .wall_clock import zone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .spec import Spec


class HasPath(Protocol):
    """A registered function: what ``@mutation`` and ``@action`` make."""

    @property
    def path(self) -> str:
        """Give the dotted path under which rows name the function."""


if TYPE_CHECKING:
    Arguments: TypeAlias = Mapping[str, Any] | Sequence[Any] | None
    Function: TypeAlias = HasPath | str

_MILLISECOND = timedelta(milliseconds=1)


def declare(  # what a cron is made of
    name: str,
    spec: Callable[[], Spec],
    fn: Function,
    args: Arguments,
    options: Mapping[str, Any],
    *,
    origin: str = "",
) -> CronDeclaration:
    """Check everything and give the declaration. ``spec`` makes the schedule, and may refuse.

    Raise InvalidOption, InvalidSchedule or TypeError; each names the cron, and its
    ``origin`` where it has one.
    """
    checked_name("the name of a cron", name)
    foreign = sorted(set(options) - CronOptions.__optional_keys__)
    if foreign:
        known = ", ".join(sorted(CronOptions.__optional_keys__))
        raise TypeError(f'The cron "{name}" has no option {", ".join(foreign)}; the options are {known}.')
    place = f'The cron "{name}"' + (f" at {origin}" if origin else "")
    try:
        positional, keywords = checked_arguments(args)
        checked = checked_options(options)
        zone(checked.get("tz", "UTC"))
        return CronDeclaration(
            name=name,
            spec=spec().to_json(),
            fn_path=path_of(fn),
            args=positional,
            kwargs=keywords,
            origin=origin,
            **checked,
        )
    except InvalidSchedule as error:
        raise error.within(place) from None
    except InvalidOption as error:
        raise InvalidOption(f"{place}: {error}") from None


def schedule_of(expr: str | None, every: timedelta | float | None) -> Spec:
    """Give the schedule of a cron expression, or of an interval: exactly one of them."""
    if (expr is None) == (every is None):
        raise InvalidOption('a schedule is either expr="0 9 * * *" or every=timedelta(...), not both and not neither.')
    return interval(every) if every is not None else CronSpec(str(expr))


def interval(every: timedelta | float) -> IntervalSpec:
    """Give the schedule of an interval, a timedelta or seconds."""
    period = checked_duration("the interval", every)
    if period % _MILLISECOND:
        raise InvalidOption(f"the interval must be a whole number of milliseconds, not {period}.")
    return IntervalSpec(period // _MILLISECOND)


def path_of(fn: Function) -> str:
    """Give the dotted path of a function or of a path."""
    path = fn if isinstance(fn, str) else getattr(fn, "path", None)
    if not isinstance(path, str) or not all(part.isidentifier() for part in path.split(".")) or "." not in path:
        raise InvalidOption(
            f"fn must be a function registered with @mutation or @action, or its dotted path, not {fn!r}."
        )
    if len(path) > MAX_PATH:
        raise InvalidOption(f"fn must have a path of at most {MAX_PATH} characters, not {len(path)}.")
    return path
