"""A stored schedule in words: "every 30 s", "at 09:00, on Monday to Friday"."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.translation import gettext as _

from django_helisched.crons.spec import IntervalSpec, parse_spec
from django_helisched.inspection.distances import text_of_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django_helisched.crons.expression import CronExpression, DayRule

_MAX_TIMES: Final = 6  # times of day that are listed one by one
_ROUND = 60  # minutes of an hour, seconds of a minute
_DAY_HOURS: Final = 24


def describe(spec: str) -> str:
    """Return the schedule in words; raise InvalidSchedule for one that cannot be read."""
    schedule = parse_spec(spec)
    if isinstance(schedule, IntervalSpec):
        return _("every %(time)s") % {"time": text_of_duration(timedelta(milliseconds=schedule.ms))}
    expression = schedule.expression
    parts = [_times(expression), *_days(expression.days)]
    return ", ".join(part for part in parts if part)


def expression_of(spec: str) -> str:
    """Return the cron expression as it was written, "" for an interval; raise InvalidSchedule."""
    schedule = parse_spec(spec)
    return "" if isinstance(schedule, IntervalSpec) else schedule.expression.text


def _times(expression: CronExpression) -> str:
    minutes, hours = expression.minutes, expression.hours
    if expression.seconds != (0,):
        return _with_seconds(expression)
    if len(minutes) * len(hours) <= _MAX_TIMES:
        listed = [f"{hour:02}:{minute:02}" for hour in hours for minute in minutes]
        return _("at %(times)s") % {"times": _listed(listed)}
    step = _step(minutes)
    if len(hours) == _DAY_HOURS:
        return _every_hour(minutes, step)
    during = _("from hour %(hours)s") % {"hours": _spans(hours)}
    if step:
        return f"{_every_minutes(step)} {during}"
    return _("at minute %(minutes)s of hour %(hours)s") % {"minutes": _spans(minutes), "hours": _spans(hours)}


def _every_hour(minutes: Sequence[int], step: int) -> str:
    if step:
        return _every_minutes(step)
    return _("every hour at minute %(minutes)s") % {"minutes": _spans(minutes)}


def _every_minutes(step: int) -> str:
    return _("every minute") if step == 1 else _("every %(count)d minutes") % {"count": step}


def _with_seconds(expression: CronExpression) -> str:
    step = _step(expression.seconds)
    if step == 1:
        seconds = _("every second")
    elif step:
        seconds = _("every %(count)d seconds") % {"count": step}
    else:
        seconds = _("at second %(seconds)s") % {"seconds": _spans(expression.seconds)}
    if len(expression.minutes) == _ROUND and len(expression.hours) == _DAY_HOURS:
        return seconds if step else f"{seconds} {_('of every minute')}"
    during = {"minutes": _spans(expression.minutes), "hours": _spans(expression.hours)}
    return f"{seconds} {_('of minute %(minutes)s of hour %(hours)s') % during}"


def _step(values: Sequence[int]) -> int:
    """Return the distance where the values go evenly round the clock, else 0."""
    if len(values) == 1 or values[0] != 0 or _ROUND % len(values):
        return 0
    step = _ROUND // len(values)
    return step if list(values) == list(range(0, _ROUND, step)) else 0


def _days(days: DayRule) -> list[str]:
    either = [_month_days(days) if days.by_month_day else "", _weekdays(days) if days.by_weekday else ""]
    named = [part for part in either if part]
    months = ""
    if len(days.months) < len(MONTHS):
        months = _("in %(months)s") % {"months": _spans(days.months, [str(MONTHS[n + 1]) for n in range(12)], first=1)}
    return [_(" or ").join(named), months]


def _month_days(days: DayRule) -> str:
    parts = [_("on day %(days)s") % {"days": _spans(days.month_days)}] if days.month_days else []
    if days.last_day:
        parts.append(_("on the last day of the month"))
    return _(" or ").join(parts)


def _weekdays(days: DayRule) -> str:
    names = [str(WEEKDAYS[index]) for index in range(7)]
    week = sorted((day - 1) % 7 for day in days.weekdays)
    parts = [_("on %(days)s") % {"days": _spans(week, names)}] if week else []
    parts += [_("on the last %(day)s") % {"day": names[(day - 1) % 7]} for day in days.last_weekdays]
    if days.nth_weekday is not None:
        day, number = days.nth_weekday
        parts.append(_("on %(day)s number %(number)d of the month") % {"day": names[(day - 1) % 7], "number": number})
    return _(" or ").join(parts)


def _spans(values: Sequence[int], names: Sequence[Any] = (), *, first: int = 0) -> str:
    """Return "0, 15, 30" or "9 to 17"; ``names`` replaces the numbers, counted from ``first``."""
    spans: list[list[int]] = []
    for value in values:
        if spans and value == spans[-1][-1] + 1:
            spans[-1].append(value)
        else:
            spans.append([value])
    named = [[names[value - first] if names else value for value in span] for span in spans]
    return ", ".join(_span(span) for span in named)


def _span(span: Sequence[Any]) -> str:
    if len(span) > 2:  # two neighbours read better as a list
        return _("%(first)s to %(last)s") % {"first": span[0], "last": span[-1]}
    return ", ".join(str(value) for value in span)


def _listed(words: Sequence[str]) -> str:
    if len(words) == 1:
        return words[0]
    return _("%(words)s and %(last)s") % {"words": ", ".join(words[:-1]), "last": words[-1]}
