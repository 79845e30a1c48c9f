"""How far apart two instants are, as people say it. Nothing here raises for the ends of the calendar."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.translation import gettext as _

NOTHING = "–"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def text_of_duration(duration: timedelta) -> str:
    """Return "350 ms", "2.4 s", "41 s", "3 min 5 s", "2 h 14 min" or "5 d 3 h"; the sign is dropped."""
    seconds = abs(duration.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.3g} s"
    if seconds < _MINUTE:
        return f"{int(seconds)} s"
    if seconds < _HOUR:
        return _two(int(seconds), _MINUTE, "min", 1, "s")
    if seconds < _DAY:
        return _two(int(seconds), _HOUR, "h", _MINUTE, "min")
    return _two(int(seconds), _DAY, "d", _HOUR, "h")


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {large_name}" + (f" {rest} {small_name}" if rest else "")


def between(start: datetime | None, end: datetime | None) -> str:
    """Return how long it was from ``start`` to ``end``, a dash where one is missing."""
    return NOTHING if start is None or end is None else text_of_duration(end - start)


def relative(moment: datetime, now: datetime) -> str:
    """Return "2 min ago", "in 40 s" or "now", as exact as a glance needs."""
    distance = moment - now
    if abs(distance) < timedelta(seconds=1):
        return _("now")
    words = rough(abs(distance))
    return _("in %(time)s") % {"time": words} if distance > timedelta(0) else _("%(time)s ago") % {"time": words}


def rough(distance: timedelta) -> str:
    """Return "40 s", "2 min", "2 h 14 min" or "5 d"."""
    seconds = int(distance.total_seconds())
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    return text_of_duration(distance) if seconds < _DAY else f"{seconds // _DAY} d"
