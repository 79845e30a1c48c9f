"""When a schedule falls due: aware datetimes in, aware UTC datetimes out.

Occurrences of a cron expression are whole seconds, those of an interval milliseconds. All
questions are answered from one fixed set of instants per schedule: a result fed back always
advances, and next, previous and count never disagree.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .epoch import EARLIEST, EPOCH, LATEST, MICROSECOND, milliseconds_of, moment_of, seconds_of
from .instants import count_instants, next_instant, previous_instant
from .spec import IntervalSpec, Spec, parse_spec
from .wall_clock import zone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    SpecLike = Spec | str | Mapping[str, Any]

_FIRST_MILLISECOND = milliseconds_of(EARLIEST)
_LAST_MILLISECOND = milliseconds_of(LATEST)


def compute_next_run(spec: SpecLike, tz: str, after: datetime, *, anchor: datetime | None = None) -> datetime | None:
    """Find the first occurrence strictly after ``after``, None past the year 9999.

    An interval falls on ``anchor`` plus whole periods, before the anchor too; without an
    anchor ``after`` itself is one. Raise InvalidSchedule for a bad spec or zone, ValueError
    for a naive datetime.
    """
    spec = parse_spec(spec)
    if isinstance(spec, IntervalSpec):
        return _next_of_interval(spec, after, after if anchor is None else anchor)
    zone(tz)
    return _from_seconds(next_instant(spec.expression, tz, seconds_of(after)))


def compute_prev_run(spec: SpecLike, tz: str, at: datetime) -> datetime | None:
    """Find the last occurrence at or before ``at``, None before the year 1.

    Cron expressions only: TypeError for an interval, whose phase is not in its spec.
    """
    spec = parse_spec(spec)
    if isinstance(spec, IntervalSpec):
        raise TypeError("compute_prev_run() takes cron expressions; an interval needs an anchor.")
    return latest_run(spec, tz, at, anchor=at)


def latest_run(spec: SpecLike, tz: str, at: datetime, *, anchor: datetime) -> datetime | None:
    """Find the last occurrence at or before ``at`` of either kind of schedule."""
    spec = parse_spec(spec)
    if isinstance(spec, IntervalSpec):
        phase = milliseconds_of(anchor)
        periods = (milliseconds_of(at) - phase) // spec.ms
        return _from_milliseconds(phase + periods * spec.ms)
    zone(tz)
    return _from_seconds(previous_instant(spec.expression, tz, seconds_of(at)))


def count_occurrences(
    spec: SpecLike, tz: str, after: datetime, until: datetime, *, anchor: datetime | None = None
) -> int:
    """Count the occurrences in ``(after, until]`` without listing them."""
    spec = parse_spec(spec)
    if isinstance(spec, IntervalSpec):
        phase = milliseconds_of(after if anchor is None else anchor)
        elapsed = (milliseconds_of(until) - phase) // spec.ms
        return max(0, elapsed - (milliseconds_of(after) - phase) // spec.ms)
    zone(tz)
    return count_instants(spec.expression, tz, seconds_of(after) + 1, seconds_of(until) + 1)


def occurrences_between(
    spec: SpecLike,
    tz: str,
    after: datetime,
    until: datetime,
    limit: int,
    *,
    anchor: datetime | None = None,
) -> list[datetime]:
    """List the newest ``limit`` occurrences in ``(after, until]``, oldest first."""
    phase = after if anchor is None else anchor
    newest: list[datetime] = []
    found = latest_run(spec, tz, until, anchor=phase) if limit > 0 else None
    while found is not None and found > after and len(newest) < limit:
        newest.append(found)
        found = latest_run(spec, tz, found - MICROSECOND, anchor=phase)
    return newest[::-1]


def first_occurrence(
    spec: SpecLike,
    tz: str,
    now: datetime,
    *,
    anchor: datetime | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> datetime | None:
    """Find the first occurrence after ``now`` that lies within ``start`` and ``end``.

    Both ends are inclusive. None: no such occurrence is left.
    """
    phase = now if anchor is None else anchor
    after = now
    if start is not None and start > now:
        after = start - MICROSECOND
    found = compute_next_run(spec, tz, after, anchor=phase)
    return None if found is None or (end is not None and found > end) else found


def _next_of_interval(spec: IntervalSpec, after: datetime, anchor: datetime) -> datetime | None:
    phase = milliseconds_of(anchor)
    periods = (milliseconds_of(after) - phase) // spec.ms + 1
    return _from_milliseconds(phase + periods * spec.ms)


def _from_seconds(instant: int | None) -> datetime | None:
    return None if instant is None else moment_of(instant)


def _from_milliseconds(instant: int) -> datetime | None:
    if not _FIRST_MILLISECOND <= instant <= _LAST_MILLISECOND:
        return None
    return EPOCH + timedelta(milliseconds=instant)
