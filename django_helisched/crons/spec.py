"""A schedule as a row stores it: an interval, or a cron expression, in canonical JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from .expression import MAX_LENGTH, CronExpression, parse_expression
from .refusals import InvalidSchedule, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CronExpression",
    "CronSpec",
    "IntervalSpec",
    "InvalidSchedule",
    "Spec",
    "notices",
    "pace_notices",
    "parse_expression",
    "parse_spec",
]

# A hundred years. Longer is a slip of the unit.
_MAX_INTERVAL = 100 * 366 * 24 * 3600 * 1000
# JSON may write each character of an expression as a six-character escape.
_MAX_JSON = 6 * MAX_LENGTH + 100


@dataclass(frozen=True, slots=True)
class IntervalSpec:
    """Every ``ms`` milliseconds, in phase with an anchor that is kept beside it."""

    ms: int

    def __post_init__(self) -> None:
        if type(self.ms) is not int:
            raise InvalidSchedule(f"An interval is a whole number of milliseconds, not {shown(repr(self.ms))}.")
        if not 1 <= self.ms <= _MAX_INTERVAL:
            raise InvalidSchedule(
                "An interval must be between 1 millisecond and 100 years "
                f"({_MAX_INTERVAL} ms); this one has {shown(repr(self.ms))}."
            )

    def to_json(self) -> str:
        """Give the one text that stands for this interval in a row."""
        return _canonical({"kind": "interval", "ms": self.ms})


@dataclass(frozen=True, slots=True)
class CronSpec:
    """The wall-clock times of a cron expression. Raise InvalidSchedule for a bad one."""

    expr: str

    def __post_init__(self) -> None:
        parse_expression(self.expr)

    @property
    def expression(self) -> CronExpression:
        """Give the parsed expression, from a bounded cache."""
        return parse_expression(self.expr)

    def to_json(self) -> str:
        """Give the one text that stands for this expression in a row, blanks made equal."""
        return _canonical({"kind": "cron", "expr": self.expression.text})


Spec: TypeAlias = IntervalSpec | CronSpec


def parse_spec(stored: Spec | str | Mapping[str, Any]) -> Spec:
    """Read ``{"kind": "interval", "ms": n}`` or ``{"kind": "cron", "expr": "..."}``.

    Takes JSON text or a mapping, and gives back what is already a spec. Raise
    InvalidSchedule for anything else, in bounded time.
    """
    if isinstance(stored, IntervalSpec | CronSpec):
        return stored
    if not isinstance(stored, str):
        return _from_mapping(stored)
    if len(stored) > _MAX_JSON:
        raise InvalidSchedule(f"The schedule {shown(stored)} has {len(stored)} characters.")
    return _from_text(stored)


@lru_cache(maxsize=1024)
def _from_text(text: str) -> Spec:
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchedule(f"The schedule {shown(text)} is not JSON.") from error
    return _from_mapping(stored)


def _from_mapping(stored: Any) -> Spec:
    match stored:
        case {"kind": "interval", "ms": ms} if len(stored) == 2:
            return IntervalSpec(ms)
        case {"kind": "cron", "expr": expr} if len(stored) == 2:
            return CronSpec(parse_expression(expr).text)
    raise InvalidSchedule(
        f"The schedule {shown(repr(stored))} must be "
        '{"kind": "interval", "ms": n} or {"kind": "cron", "expr": "..."}.'
    )


def _canonical(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def notices(expr: str | CronExpression) -> tuple[str, ...]:
    """Say in whole sentences what is legal in an expression but easily meant otherwise."""
    expression = parse_expression(expr) if isinstance(expr, str) else expr
    return (*_day_notices(expression), *_step_notices(expression), *pace_notices(expression))


def _day_notices(expression: CronExpression) -> list[str]:
    days = expression.days
    if not days.by_month_day or not days.by_weekday:
        return []
    if len(days.weekdays) == 7:
        return ["This weekday field selects every day, so the day of month has no effect."]
    return ["Day of month and weekday are both restricted: the cron fires on every day that matches one of them."]


def _step_notices(expression: CronExpression) -> list[str]:
    return [
        f"The {field} step {step} is wider than its range: only {field} {value} is selected."
        for field, step, value in expression.wide_steps
    ]


def pace_notices(expression: CronExpression) -> list[str]:
    """Say that an expression fires more than once a minute, which a stray field does, too."""
    times = len(expression.seconds)
    if times == 1:
        return []
    return [f"With six fields the first is seconds: the cron fires {times} times in each minute that matches."]
