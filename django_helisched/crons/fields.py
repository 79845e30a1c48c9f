"""One field of a cron expression: lists, ranges, steps, names and the letters of the days."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .refusals import shown

if TYPE_CHECKING:
    from .refusals import Piece


class Field(NamedTuple):
    """What a field is called and what may stand in it."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
MONTH_DAY = Field("day of month", 1, 31)
MONTH = Field(
    "month",
    1,
    12,
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)
# Sunday is 0 and 7; the names count from 0, so that fri-sun runs backwards, as in the reference.
WEEKDAY = Field("weekday", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))
FIELDS = (SECOND, MINUTE, HOUR, MONTH_DAY, MONTH, WEEKDAY)

# What other crons know and this one refuses, with the way out.
_FOREIGN = {
    "W": "W (the nearest workday) is not supported",
    "H": "H (a hashed value) is not supported; use jitter to spread crons",
    "R": "R (a random value) is not supported; use jitter to spread crons",
    "L": "L stands alone as a day of month, or after a weekday as in 5L",
}
_MAX_WEEKS = 5


@dataclass(slots=True)
class Selection:
    """What a field selects. Weekdays still count Sunday as 0 or 7, as they were written."""

    values: set[int] = field(default_factory=set)
    last_day: bool = False
    last_weekdays: set[int] = field(default_factory=set)
    nth_weekday: tuple[int, int] | None = None
    wide_steps: list[tuple[str, int, int]] = field(default_factory=list)


def read_field(kind: Field, piece: Piece) -> Selection:
    """Read one field. Raise InvalidSchedule with the place of the member to blame."""
    selection = Selection()
    members = piece.split(",")
    for member in members:
        if not member.value:
            raise piece.refuse(f"the {kind.name} list has an empty member")
        if len(members) > 1 and ("#" in member.value or "?" in member.value):
            raise member.refuse("# and ? cannot stand in a list")
        if not _read_letters(kind, member, selection):
            _read_numbers(kind, member, selection)
    return selection


def _read_letters(kind: Field, member: Piece, selection: Selection) -> bool:
    """Take ``?``, ``L``, ``5L`` and ``2#1``, and say whether the member was one of them."""
    text = member.value.upper()
    if text == "?" and kind in {MONTH_DAY, WEEKDAY}:
        selection.values.update(range(kind.low, kind.high + 1))
    elif text == "L" and kind is MONTH_DAY:
        selection.last_day = True
    elif "#" in text and kind is WEEKDAY:
        selection.nth_weekday = _nth_weekday(member)
    elif text.endswith("L") and len(text) > 1 and kind is WEEKDAY:
        selection.last_weekdays.add(_value(kind, member.without_last()) % 7)
    else:
        return False
    return True


def _nth_weekday(member: Piece) -> tuple[int, int]:
    weekday, *numbers = member.split("#")
    if len(numbers) != 1:
        raise member.refuse("# stands between one weekday and one number, as in 2#1")
    number = numbers[0]
    if number.value not in {"1", "2", "3", "4", "5"}:
        raise number.refuse(f"{shown(number.value)} after # must be 1 to {_MAX_WEEKS}: no month has more of a weekday")
    return _value(WEEKDAY, weekday) % 7, int(number.value)


def _read_numbers(kind: Field, member: Piece, selection: Selection) -> None:
    base, *steps = member.split("/")
    if len(steps) > 1:
        raise member.refuse(f"the {kind.name} has more than one step")
    low, high = _bounds(kind, base, to_the_end=bool(steps))
    step = _step(kind, steps[0]) if steps else 1
    if steps and step > high - low > 0:
        selection.wide_steps.append((kind.name, step, low))
    selection.values.update(range(low, high + 1, step))


def _bounds(kind: Field, base: Piece, *, to_the_end: bool) -> tuple[int, int]:
    if base.value == "*":
        return kind.low, kind.high
    ends = base.split("-")
    if len(ends) == 1:
        low = _value(kind, base)
        return low, kind.high if to_the_end else low
    if len(ends) > 2 or not all(end.value for end in ends):
        raise base.refuse(f"the {kind.name} range {shown(base.value)} needs two ends, as in 1-5")
    low, high = (_value(kind, end) for end in ends)
    if low > high:
        raise base.refuse(
            f"the {kind.name} range {base.value} runs backwards; write two ranges, such as "
            f"{low}-{kind.high},{kind.low}-{high}"
        )
    return low, high


def _value(kind: Field, piece: Piece) -> int:
    text = piece.value.lower()
    if text in kind.names:
        return kind.names.index(text) + kind.low
    if re.fullmatch("[0-9]+", text) is None:
        raise piece.refuse(_not_a_value(kind, piece.value))
    digits = text.lstrip("0") or "0"
    # The length is looked at first: turning a thousand digits into a number is work.
    if len(digits) > 2 or not kind.low <= int(digits) <= kind.high:
        raise piece.refuse(f"{kind.name} {_cut(digits)} is out of range {kind.low}-{kind.high}")
    return int(digits)


def _step(kind: Field, piece: Piece) -> int:
    digits = piece.value.lstrip("0")
    if re.fullmatch("[0-9]+", piece.value) is None or not digits:
        raise piece.refuse(f"the {kind.name} step must be a whole number of 1 or more")
    if len(digits) > 9:
        raise piece.refuse(f"the {kind.name} step {_cut(digits)} is too large")
    return int(digits)


def _not_a_value(kind: Field, text: str) -> str:
    last = text[-1:].upper()
    if last in _FOREIGN and text[:-1].strip("0123456789") == "":
        return _FOREIGN[last]
    wanted = f"a number from {kind.low} to {kind.high}"
    if kind.names:
        wanted += f" or a name from {kind.names[0]} to {kind.names[-1]}"
    return f"{kind.name} {shown(text)} must be {wanted}"


def _cut(digits: str) -> str:
    return digits if len(digits) <= 12 else f"{digits[:12]}..."
