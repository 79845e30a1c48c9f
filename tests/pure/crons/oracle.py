"""The rule for zones once more, as plainly as PEP 495 lets one write it: slow, and beyond doubt.

Nothing here comes from the package but the parsed sets of an expression.
"""

from __future__ import annotations

import struct
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_helisched.crons.expression import CronExpression, DayRule

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def moment(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def seconds(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(seconds=1)


def offset(key: str, at: int) -> int:
    found = moment(at).astimezone(zone(key)).utcoffset()
    assert found is not None
    return found // timedelta(seconds=1)


@cache
def zone(key: str) -> ZoneInfo:
    with _file(key).open("rb") as data:
        return ZoneInfo.from_file(data, key=key)


def instants(expression: CronExpression, key: str, first: datetime, last: datetime) -> list[datetime]:
    """List the instants of the set in ``[first, last]``, by turning every match into them."""
    found: set[datetime] = set()
    day = (first - 3 * DAY).date()
    while day <= (last + 3 * DAY).date():
        if is_selected(expression.days, day):
            for time_of_day in _times(expression):
                found.update(_instants_of(expression, datetime.combine(day, time_of_day), zone(key)))
        day += DAY
    return sorted(each for each in found if first <= each <= last)


def _instants_of(expression: CronExpression, local: datetime, tz: ZoneInfo) -> Iterator[datetime]:
    first_pass = local.replace(tzinfo=tz, fold=0).astimezone(UTC)
    if len(expression.hours) < 24:
        yield first_pass
    elif first_pass.astimezone(tz).replace(tzinfo=None, fold=0) == local:
        yield first_pass
        yield local.replace(tzinfo=tz, fold=1).astimezone(UTC)


def _times(expression: CronExpression) -> Iterator[time]:
    for hour in expression.hours:
        for minute in expression.minutes:
            for second in expression.seconds:
                yield time(hour, minute, second)


def is_selected(rule: DayRule, day: date) -> bool:
    if day.month not in rule.months:
        return False
    by_month_day = day.day in rule.month_days or (rule.last_day and (day + DAY).day == 1)
    by_weekday = _is_weekday_selected(rule, day)
    if rule.by_month_day and rule.by_weekday:
        return by_month_day or by_weekday
    return (by_month_day or not rule.by_month_day) and (by_weekday or not rule.by_weekday)


def _is_weekday_selected(rule: DayRule, day: date) -> bool:
    weekday = day.isoweekday() % 7
    is_last = day.day > monthrange(day.year, day.month)[1] - 7
    return (
        weekday in rule.weekdays
        or (is_last and weekday in rule.last_weekdays)
        or (weekday, (day.day + 6) // 7) == rule.nth_weekday
    )


def zone_names() -> list[str]:
    return sorted(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


@cache
def changes(key: str) -> list[tuple[int, int, int]]:
    """Read the changes of a zone's offset from its file: (instant, offset before, offset after)."""
    data = _file(key).read_bytes()
    # RFC 8536: a version 1 block to skip, then the 64-bit block. Both say first how long they are.
    start = 44 + _length_of_block(data, 0, time_size=4)
    _, _, _, transitions, types, _ = struct.unpack(">6l", data[start + 20 : start + 44])
    body = start + 44
    moments = struct.unpack(f">{transitions}q", data[body : body + 8 * transitions])
    indexes = data[body + 8 * transitions : body + 9 * transitions]
    records = body + 9 * transitions
    offsets = [struct.unpack(">l", data[records + 6 * n : records + 6 * n + 4])[0] for n in range(types)]
    found = []
    before = offsets[0]
    for at, index in zip(moments, indexes, strict=True):
        if offsets[index] != before:
            found.append((at, before, offsets[index]))
        before = offsets[index]
    return found


def _length_of_block(data: bytes, start: int, *, time_size: int) -> int:
    counts: tuple[int, ...] = struct.unpack(">6l", data[start + 20 : start + 44])
    is_ut, is_std, leaps, transitions, types, characters = counts
    return transitions * (time_size + 1) + types * 6 + characters + leaps * (time_size + 4) + is_std + is_ut


def _file(key: str):
    return files("tzdata").joinpath("zoneinfo", *key.split("/"))
