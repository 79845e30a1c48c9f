"""Our cron grammar: text in, canonical sets out, and a reason for everything refused.

Five fields (minute hour day month weekday), or six with seconds first; names, lists,
ranges that never wrap, steps, ``L``, ``5L``, ``2#1``, ``?`` and the ``@`` aliases. Bounds
are checked before a range is expanded, so the time is bounded for any input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from .fields import FIELDS, Selection, read_field
from .refusals import InvalidSchedule, Piece, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

# The longest sensible list, all 60 minutes written out, has 169 characters.
MAX_LENGTH = 1000

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_REFUSED_ALIASES = {
    "@reboot": (
        "@reboot is not a time; to run a job when a process starts, call its enqueue() in the "
        "code that starts the process"
    ),
    "@every": "@every is not supported; declare an interval instead of a cron",
}
# The longest that a month can be: in some years February has its 29th.
_MONTHS = (
    ("January", 31),
    ("February", 29),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
)
MONTH_NAMES = tuple(name for name, _ in _MONTHS)
_WEEK = 7
_LONGEST_MONTH = 31
_DAY = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRule:
    """The days that an expression selects. Sunday is weekday 0.

    With ``by_month_day`` and ``by_weekday`` both set a day needs to match only one of
    them; with neither, every day of ``months`` matches.
    """

    months: tuple[int, ...]
    month_days: tuple[int, ...]
    last_day: bool
    weekdays: tuple[int, ...]
    last_weekdays: tuple[int, ...]
    nth_weekday: tuple[int, int] | None
    by_month_day: bool
    by_weekday: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CronExpression:
    """An expression that can fire, as sorted tuples without repeats.

    ``text`` is what was written, with single blanks. ``wide_steps`` lists steps that leave
    only the first value of their range, as (field, step, value).
    """

    text: str
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: DayRule
    wide_steps: tuple[tuple[str, int, int], ...]

    @property
    def keeps_real_time(self) -> bool:
        """Say whether all 24 hours are selected: then a change of the clocks moves nothing."""
        return len(self.hours) == _DAY


def parse_expression(text: str) -> CronExpression:
    """Read a cron expression.

    Raise InvalidSchedule, with the reason and the place, for anything outside the grammar
    and for what can never fire. The last 1024 parsed expressions are kept.
    """
    if not isinstance(text, str):
        raise InvalidSchedule(f"A cron expression is text, not {type(text).__name__}.")
    if len(text) > MAX_LENGTH:
        raise InvalidSchedule(f"{shown(text)} has {len(text)} characters; a cron expression has at most {MAX_LENGTH}.")
    return _parse(text)


@lru_cache(maxsize=1024)
def _parse(text: str) -> CronExpression:
    _refuse_foreign_characters(text)
    written = [Piece(text, *match.span()) for match in re.finditer(r"[^ \t\r\n]+", text)]
    pieces = _expand_alias(written)
    if len(pieces) == len(FIELDS) - 1:
        pieces = [Piece.whole("0"), *pieces]
    if len(pieces) != len(FIELDS):
        raise InvalidSchedule(_wrong_number_of_fields(text, len(pieces)), text=text)
    second, minute, hour, day, month, weekday = selections = [
        read_field(kind, piece) for kind, piece in zip(FIELDS, pieces, strict=True)
    ]
    days = _day_rule(day, month, weekday)
    _refuse_impossible(text, days)
    return CronExpression(
        text=" ".join(piece.value for piece in written),
        seconds=tuple(sorted(second.values)),
        minutes=tuple(sorted(minute.values)),
        hours=tuple(sorted(hour.values)),
        days=days,
        wide_steps=tuple(step for each in selections for step in each.wide_steps),
    )


def _refuse_foreign_characters(text: str) -> None:
    line = text.strip(" \t\r\n")
    found = re.search(r"[^\t -~]", line)
    if found is not None:
        raise InvalidSchedule(
            f"{shown(text)}: the character {shown(found.group())} is not allowed; an expression is one line of ASCII.",
            text=text,
            position=text.index(line) + found.start(),
            length=1,
        )


def _expand_alias(pieces: list[Piece]) -> list[Piece]:
    if not pieces or not pieces[0].value.startswith("@"):
        return pieces
    first = pieces[0]
    alias = first.value.lower()
    if alias in _REFUSED_ALIASES:
        raise first.refuse(_REFUSED_ALIASES[alias])
    if alias not in ALIASES or len(pieces) > 1:
        raise first.refuse(f"{shown(first.value)} is none of {', '.join(ALIASES)}, alone")
    return [Piece.whole(field) for field in ALIASES[alias].split()]


def _wrong_number_of_fields(text: str, number: int) -> str:
    if number == 0:
        return "The cron expression is blank; write five fields: minute hour day month weekday."
    fields = "1 field" if number == 1 else f"{number} fields"
    return f"{shown(text)} has {fields}; write 5 (minute hour day month weekday), or 6 with seconds first."


def _day_rule(day: Selection, month: Selection, weekday: Selection) -> DayRule:
    week = {value % _WEEK for value in weekday.values}
    return DayRule(
        months=tuple(sorted(month.values)),
        month_days=tuple(sorted(day.values)),
        last_day=day.last_day,
        weekdays=tuple(sorted(week)),
        last_weekdays=tuple(sorted(weekday.last_weekdays)),
        nth_weekday=weekday.nth_weekday,
        by_month_day=len(day.values) < _LONGEST_MONTH,
        # A full week is no restriction only where it is written up to 7, as *, */1, 0-7 and
        # 1-7 are: the reference takes 0-6 for one, and expressions must mean the same here.
        by_weekday=len(week) < _WEEK or _WEEK not in weekday.values,
    )


def _refuse_impossible(text: str, days: DayRule) -> None:
    if not days.by_month_day or days.by_weekday or days.last_day:
        return
    months = [_MONTHS[number - 1] for number in days.months]
    if min(days.month_days) > max(length for _, length in months):
        verb = "has" if len(months) == 1 else "have"
        raise InvalidSchedule(
            f"{shown(text)} never fires: {_listed([name for name, _ in months], 'and')} {verb} "
            f"no day {_listed([str(day) for day in days.month_days], 'or')}.",
            text=text,
        )


def _listed(words: Sequence[str], joint: str) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"
