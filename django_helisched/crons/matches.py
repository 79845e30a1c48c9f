"""The wall-clock times that an expression names, before any zone is asked.

A local second is counted from 1970-01-01 00:00 on the wall clock, as if every day had
86,400 of them. All matches are selected days times times of day, so that they can be
counted without being listed.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from .days import calendar_of
from .epoch import DAY

if TYPE_CHECKING:
    from .expression import CronExpression


def next_match(expression: CronExpression, local: int) -> int | None:
    """Find the first match at or after ``local``."""
    calendar = calendar_of(expression.days)
    day, second = divmod(local, DAY)
    selected = calendar.next(day)
    if selected == day:
        earlier = _times_before(expression, second)
        if earlier < _times_per_day(expression):
            return day * DAY + _time(expression, earlier)
        selected = calendar.next(day + 1)
    return None if selected is None else selected * DAY + _time(expression, 0)


def previous_match(expression: CronExpression, local: int) -> int | None:
    """Find the last match at or before ``local``."""
    calendar = calendar_of(expression.days)
    day, second = divmod(local, DAY)
    selected = calendar.previous(day)
    if selected == day:
        until = _times_before(expression, second + 1)
        if until > 0:
            return day * DAY + _time(expression, until - 1)
        selected = calendar.previous(day - 1)
    if selected is None:
        return None
    return selected * DAY + _time(expression, _times_per_day(expression) - 1)


def count_matches(expression: CronExpression, first: int, end: int) -> int:
    """Count the matches in ``[first, end)``."""
    return _matches_before(expression, first, end) if first < end else 0


def match_bits(expression: CronExpression, first: int, length: int) -> int:
    """Give the matches of a stretch as a number: bit ``n`` is the second ``first + n``."""
    calendar = calendar_of(expression.days)
    times = _day_bits(expression)
    bits = 0
    for day in range(first // DAY, (first + length - 1) // DAY + 1):
        if calendar.next(day) == day:
            shift = day * DAY - first
            bits |= times << shift if shift >= 0 else times >> -shift
    return bits & ((1 << length) - 1)


def _matches_before(expression: CronExpression, first: int, end: int) -> int:
    calendar = calendar_of(expression.days)
    (first_day, first_second), (end_day, end_second) = divmod(first, DAY), divmod(end, DAY)
    total = calendar.count(first_day, end_day) * _times_per_day(expression)
    if calendar.next(first_day) == first_day:
        total -= _times_before(expression, first_second)
    if calendar.next(end_day) == end_day:
        total += _times_before(expression, end_second)
    return total


def _times_per_day(expression: CronExpression) -> int:
    return len(expression.hours) * len(expression.minutes) * len(expression.seconds)


def _times_before(expression: CronExpression, second: int) -> int:
    """Count the times of day before ``second``, which may be a whole day."""
    hour, minute, second = second // 3600, second // 60 % 60, second % 60
    in_minute = len(expression.seconds)
    in_hour = in_minute * len(expression.minutes)
    whole_hours = bisect_left(expression.hours, hour)
    total = whole_hours * in_hour
    if whole_hours == len(expression.hours) or expression.hours[whole_hours] != hour:
        return total
    whole_minutes = bisect_left(expression.minutes, minute)
    total += whole_minutes * in_minute
    if whole_minutes == len(expression.minutes) or expression.minutes[whole_minutes] != minute:
        return total
    return total + bisect_left(expression.seconds, second)


def _time(expression: CronExpression, index: int) -> int:
    """Give the time of day with ``index`` times before it."""
    index, second = divmod(index, len(expression.seconds))
    hour, minute = divmod(index, len(expression.minutes))
    return expression.hours[hour] * 3600 + expression.minutes[minute] * 60 + expression.seconds[second]


def _day_bits(expression: CronExpression) -> int:
    minute = sum(1 << second for second in expression.seconds)
    hour = sum(minute << 60 * number for number in expression.minutes)
    return sum(hour << 3600 * number for number in expression.hours)
