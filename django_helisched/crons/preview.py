"""The next fires of a schedule, with what the clocks do to them: the scheduler's own answers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from .cron import Overlap
from .epoch import moment_of, seconds_of
from .expression import MONTH_NAMES
from .matches import next_match
from .occurrences import compute_next_run, first_occurrence
from .spec import CronSpec, parse_spec
from .wall_clock import LAST_INSTANT, stretch_at, zone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from .expression import CronExpression
    from .occurrences import SpecLike
    from .wall_clock import Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRow:
    """One fire to come: the instant in UTC, the same in the cron's zone, and a note or ""."""

    due_at: datetime
    local: datetime
    note: str


def preview(  # what a row of the cron table says of its schedule
    spec: SpecLike,
    tz: str,
    now: datetime,
    count: int = 10,
    *,
    anchor: datetime | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> list[PreviewRow]:
    """List the next ``count`` occurrences after ``now``, fewer where the schedule ends.

    Notes tell of times that do not exist, that happen twice, and of a new distance to UTC.
    Raise InvalidSchedule for a bad spec or zone.
    """
    spec = parse_spec(spec)
    phase = now if anchor is None else anchor
    rows: list[PreviewRow] = []
    due_at = first_occurrence(spec, tz, now, anchor=phase, start=start, end=end)
    while due_at is not None and len(rows) < count and (end is None or due_at <= end):
        note = _note(spec.expression, tz, due_at, rows) if isinstance(spec, CronSpec) else ""
        rows.append(PreviewRow(due_at=due_at, local=due_at.astimezone(zone(tz)), note=note))
        due_at = compute_next_run(spec, tz, due_at, anchor=phase)
    return rows


def crowding(rows: Sequence[PreviewRow], duration: timedelta, overlap: str) -> list[str]:
    """Say what becomes of fires that come while a run of ``duration`` still goes on; [] where none does."""
    gaps = [later.due_at - sooner.due_at for sooner, later in pairwise(rows)]
    shortest = min(gaps, default=duration)
    if duration <= shortest:
        return []
    fact = f"A run took up to {_length(ceil(duration.total_seconds()))} lately, and two fires are "
    fact += f"{_length(int(shortest.total_seconds())) or 'less than 1 s'} apart:"
    if overlap == Overlap.SKIP:
        return [f"{fact} fires that come meanwhile are left out, and count as missed."]
    if overlap == Overlap.CANCEL_PREVIOUS:
        return [f"{fact} each fire cancels the run before."]
    return [f'{fact} up to {ceil(duration / shortest)} run at once; overlap="skip" would leave fires out instead.']


def _note(expression: CronExpression, tz: str, due_at: datetime, earlier: list[PreviewRow]) -> str:
    instant = seconds_of(due_at)
    stretch = stretch_at(tz, instant)
    sentences = [
        _skipped(stretch, instant) if _is_made_up_for(expression, stretch, instant) else "",
        _repeated(expression, stretch, stretch_at(tz, min(stretch.end, LAST_INSTANT)), instant),
        _moved(expression, tz, seconds_of(earlier[-1].due_at), instant) if earlier else "",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _is_made_up_for(expression: CronExpression, stretch: Stretch, instant: int) -> bool:
    """Say whether the clocks jumped over the time that fires here."""
    if expression.keeps_real_time or instant >= stretch.gap_end:
        return False
    skipped = instant + stretch.before
    return next_match(expression, skipped) == skipped


def _skipped(stretch: Stretch, instant: int) -> str:
    skipped, shown = instant + stretch.before, instant + stretch.offset
    day = "" if _day(skipped) == _day(shown) else f" on {_day(shown)}"
    return f"{_time(skipped)} does not exist on {_day(skipped)}: fires at {_time(shown)}{day}."


def _repeated(expression: CronExpression, stretch: Stretch, following: Stretch, instant: int) -> str:
    local = instant + stretch.offset
    twice = f"{_time(local)} happens twice on {_day(local)}:"
    if instant < stretch.repeat_end:
        return f"{twice} this is the second time."
    if following.start != stretch.end or local < following.start + following.offset:
        return ""
    if expression.keeps_real_time:
        return f"{twice} this is the first time."
    return f"{twice} fires the first time only."


def _moved(expression: CronExpression, tz: str, earlier: int, instant: int) -> str:
    if expression.keeps_real_time:
        return ""
    change = _offset_used(expression, tz, instant) - _offset_used(expression, tz, earlier)
    if change == 0:
        return ""
    direction = "earlier" if change > 0 else "later"
    return f"From here on {_length(abs(change))} {direction} in UTC."


def _offset_used(expression: CronExpression, tz: str, instant: int) -> int:
    stretch = stretch_at(tz, instant)
    return stretch.before if _is_made_up_for(expression, stretch, instant) else stretch.offset


def _time(local: int) -> str:
    shown = moment_of(local)
    return f"{shown:%H:%M:%S}" if shown.second else f"{shown:%H:%M}"


def _day(local: int) -> str:
    shown = moment_of(local)
    return f"{shown.day} {MONTH_NAMES[shown.month - 1]}"


def _length(seconds: int) -> str:
    hours, minutes = divmod(seconds // 60, 60)
    parts = ((hours, "h"), (minutes, "min"), (seconds % 60, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
