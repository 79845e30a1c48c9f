"""Which days an expression selects, walked by croniter and kept as patterns of months.

Days are counted from 1970-01-01, as ``seconds // 86400`` gives them. A month's pattern
depends only on its length and on the weekday of its first day, so an expression has at
most 28 patterns, whatever the years.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .expression import DayRule

_EPOCH = date(1970, 1, 1).toordinal()
FIRST_DAY = date.min.toordinal() - _EPOCH
LAST_DAY = date.max.toordinal() - _EPOCH


class DayCalendar:
    """The selected days of one rule, as a set that can be searched and counted."""

    def __init__(self, rule: DayRule) -> None:
        self._rule = rule
        self._months = frozenset(rule.months)
        self._patterns: dict[tuple[int, int], int] = {}
        self._is_every_day = len(rule.months) == 12 and not (rule.by_month_day or rule.by_weekday)

    def next(self, day: int) -> int | None:
        """Find the first selected day at or after ``day``, None past the year 9999."""
        day = max(day, FIRST_DAY)
        if self._is_every_day or day > LAST_DAY:
            return day if day <= LAST_DAY else None
        start = date.fromordinal(day + _EPOCH)
        pattern = self._pattern(start.year, start.month) >> start.day << start.day
        number = _month_number(start)
        while not pattern and number < _month_number(date.max):
            number += 1
            pattern = self._pattern(*_month(number))
        lowest = (pattern & -pattern).bit_length() - 1
        return _day(number, lowest) if pattern else None

    def previous(self, day: int) -> int | None:
        """Find the last selected day at or before ``day``, None before the year 1."""
        day = min(day, LAST_DAY)
        if self._is_every_day or day < FIRST_DAY:
            return day if day >= FIRST_DAY else None
        start = date.fromordinal(day + _EPOCH)
        pattern = self._pattern(start.year, start.month) & ((2 << start.day) - 1)
        number = _month_number(start)
        while not pattern and number > _month_number(date.min):
            number -= 1
            pattern = self._pattern(*_month(number))
        return _day(number, pattern.bit_length() - 1) if pattern else None

    def count(self, first: int, end: int) -> int:
        """Count the selected days in ``[first, end)``."""
        first, end = max(first, FIRST_DAY), min(end, LAST_DAY + 1)
        if self._is_every_day or first >= end:
            return max(0, end - first)
        start, last = date.fromordinal(first + _EPOCH), date.fromordinal(end - 1 + _EPOCH)
        total = sum(
            self._pattern(*_month(number)).bit_count()
            for number in range(_month_number(start), _month_number(last) + 1)
        )
        before = self._pattern(start.year, start.month) & ((1 << start.day) - 1)
        after = self._pattern(last.year, last.month) >> last.day + 1
        return total - before.bit_count() - after.bit_count()

    def _pattern(self, year: int, month: int) -> int:
        """Give the selected days of a month, day ``d`` as bit ``d``."""
        if month not in self._months:
            return 0
        kind = monthrange(year, month)
        if kind not in self._patterns:
            self._patterns[kind] = _walk(self._rule, kind)
        return self._patterns[kind]


@lru_cache(maxsize=1024)
def calendar_of(rule: DayRule) -> DayCalendar:
    """Give the calendar of a rule; the last 1024 are kept with their patterns."""
    return DayCalendar(rule)


def _month_number(day: date) -> int:
    return day.year * 12 + day.month - 1


def _month(number: int) -> tuple[int, int]:
    return number // 12, number % 12 + 1


def _day(month_number: int, day: int) -> int:
    return date(*_month(month_number), day).toordinal() - _EPOCH


def _walk(rule: DayRule, kind: tuple[int, int]) -> int:
    if not rule.by_month_day and not rule.by_weekday:
        return (2 << kind[1]) - 2
    pattern = 0
    for day_field, weekday_field in _canonical_fields(rule):
        for day in _days_by_croniter(f"0 0 {day_field} * {weekday_field}", kind):
            pattern |= 1 << day
    return pattern


def _canonical_fields(rule: DayRule) -> Iterator[tuple[str, str]]:
    """Ask for one thing at a time: croniter mixes neither plain days with ``L5`` nor the fields
    by the rule that holds here, and reads ``5-5`` as ``*``.
    """
    if rule.by_month_day:
        yield ",".join([*map(str, rule.month_days), *(["l"] if rule.last_day else [])]), "*"
    if rule.by_weekday:
        if rule.weekdays:
            yield "*", ",".join(map(str, rule.weekdays))
        if rule.last_weekdays:
            yield "*", ",".join(f"l{weekday}" for weekday in rule.last_weekdays)
        if rule.nth_weekday:
            weekday, week = rule.nth_weekday
            yield "*", f"{weekday}#{week}"


def _days_by_croniter(expr: str, kind: tuple[int, int]) -> Iterator[int]:
    # Takes a third of the time of all our imports, and a process that only enqueues never gets here.
    from croniter import croniter

    year, month = _months_by_kind()[kind]
    walker = croniter(expr, datetime(year, month, 1) - timedelta(seconds=1))  # noqa: DTZ001
    while (day := walker.get_next(datetime)).month == month:
        yield day.day


@lru_cache(maxsize=1)
def _months_by_kind() -> dict[tuple[int, int], tuple[int, int]]:
    """Find a month of every kind: 28 years hold them all."""
    return {monthrange(year, month): (year, month) for year in range(2000, 2028) for month in range(1, 13)}
