"""The one fixed set of instants of an expression in a zone: search it, and count it.

The set is every wall-clock match turned into an instant. Where all 24 hours are selected,
matches that a change of the clocks skips are dropped, and repeated ones count twice: real
time goes on. Otherwise a skipped match fires as much later as the clocks jumped, once if
that is a match already, and a repeated one fires on the first pass. In the terms of PEP 495
that is ``fold=0`` for every match, and ``fold=1`` too for all 24 hours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .matches import count_matches, match_bits, next_match, previous_match
from .wall_clock import FIRST_INSTANT, LARGEST_CHANGE, LAST_INSTANT, stretch_at

if TYPE_CHECKING:
    from .expression import CronExpression
    from .wall_clock import Stretch

# Offsets differ by less than two days. That far from a match that one offset finds, no other
# offset can have put one in between: the search may jump over the stretches there.
_MARGIN = 2 * LARGEST_CHANGE


def next_instant(expression: CronExpression, zone: str, after: int) -> int | None:
    """Find the first instant of the set after ``after``, None past the year 9999."""
    instant = max(after + 1, FIRST_INSTANT)
    while instant <= LAST_INSTANT:
        stretch = stretch_at(zone, instant)
        found = _first_from(expression, stretch, instant)
        if found is not None and found < stretch.end:
            return found
        if stretch.end - instant < _MARGIN:
            instant = stretch.end
        elif found is None:
            return None
        else:
            instant = max(stretch.end, found - _MARGIN)
    return None


def previous_instant(expression: CronExpression, zone: str, at: int) -> int | None:
    """Find the last instant of the set at or before ``at``, None before the year 1."""
    instant = min(at, LAST_INSTANT)
    while instant >= FIRST_INSTANT:
        stretch = stretch_at(zone, instant)
        found = _last_until(expression, stretch, instant)
        if found is not None and found >= stretch.start:
            return found
        if instant - stretch.start < _MARGIN:
            instant = stretch.start - 1
        elif found is None:
            return None
        else:
            instant = min(stretch.start - 1, found + _MARGIN)
    return None


def count_instants(expression: CronExpression, zone: str, first: int, end: int) -> int:
    """Count the instants of the set in ``[first, end)`` without listing them."""
    total = 0
    first, end = max(first, FIRST_INSTANT), min(end, LAST_INSTANT + 1)
    while first < end:
        stretch = stretch_at(zone, first)
        stop = min(stretch.end, end)
        total += _count_within(expression, stretch, first, stop)
        first = stop
    return total


def _first_from(expression: CronExpression, stretch: Stretch, instant: int) -> int | None:
    """Find the next match by the clocks of this stretch; it may lie past its end."""
    if expression.keeps_real_time:
        return _earlier_by(next_match(expression, instant + stretch.offset), stretch.offset)
    shifted = None
    if instant < stretch.gap_end:
        shifted = _earlier_by(next_match(expression, instant + stretch.before), stretch.before)
    from_first_pass = max(instant, stretch.repeat_end)
    regular = _earlier_by(next_match(expression, from_first_pass + stretch.offset), stretch.offset)
    if shifted is None or shifted >= stretch.gap_end:
        return regular
    return shifted if regular is None else min(shifted, regular)


def _last_until(expression: CronExpression, stretch: Stretch, instant: int) -> int | None:
    """Find the last match by the clocks of this stretch; it may lie before its start."""
    regular = _earlier_by(previous_match(expression, instant + stretch.offset), stretch.offset)
    if expression.keeps_real_time or regular is None:
        return regular
    if regular < stretch.repeat_end:
        # The second pass fires nothing.
        regular = min(regular, stretch.start - 1)
    if stretch.gap_end == stretch.start:
        return regular
    jumped_over = min(instant, stretch.gap_end - 1) + stretch.before
    shifted = _earlier_by(previous_match(expression, jumped_over), stretch.before)
    return regular if shifted is None else max(regular, shifted)


def _count_within(expression: CronExpression, stretch: Stretch, first: int, end: int) -> int:
    if expression.keeps_real_time:
        return count_matches(expression, first + stretch.offset, end + stretch.offset)
    total = 0
    length = min(end, stretch.gap_end) - first
    if length > 0:
        skipped = match_bits(expression, first + stretch.before, length)
        regular = match_bits(expression, first + stretch.offset, length)
        total = (skipped | regular).bit_count()
        first += length
    first = max(first, stretch.repeat_end)
    return total + count_matches(expression, first + stretch.offset, end + stretch.offset)


def _earlier_by(local: int | None, offset: int) -> int | None:
    return None if local is None else local - offset
