"""One readable line for each event, as `runscheduler` shows it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from django_helisched.crons.refusals import UnknownZone
from django_helisched.crons.wall_clock import zone
from django_helisched.driver.endings import short
from django_helisched.driver.events import CronEvent, Event, JobEvent, What

if TYPE_CHECKING:
    from collections.abc import Callable

_PATH_WIDTH = 34  # most paths fit; a longer one pushes its line, not the others

# A symbol, the same in ASCII, and the colour's number.
_GLYPHS = {
    What.JOB_STARTED: ("→", ">", 36),
    What.JOB_SUCCEEDED: ("✓", "+", 32),
    What.JOB_FAILED: ("✗", "x", 31),
    What.JOB_RETRIED: ("↻", "~", 33),
    What.JOB_SNOOZED: ("↻", "~", 36),
    What.JOB_CANCELED: ("⊘", "-", 35),
    What.CRON_FIRED: ("◷", "*", 34),
    What.CRON_PLANNED: ("·", ".", 90),
}
_NEUTRAL = ("·", ".", 90)
_ALARM = ("!", "!", 31)


class LineFormatter(logging.Formatter):
    """Log records as lines of time, symbol, id, function and what there is to say.

    Whatever a job's error contains stays on its line and moves no cursor.
    """

    def __init__(self, *, colour: bool, ascii_only: bool, process: int | None = None) -> None:
        super().__init__()
        self._process = "" if process is None else f" [{process}]"
        self._colour = colour
        self._ascii = ascii_only

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and a traceback under it where the record has one."""
        moment = datetime.fromtimestamp(record.created, tz=timezone.get_default_timezone())
        event: Event | None = getattr(record, "event", None)
        symbol, plain, number = _glyph(event, record.levelno)
        mark = plain if self._ascii else symbol
        text = printable(record.getMessage() if event is None else line_of(event))
        if self._ascii:
            text = text.encode("ascii", "backslashreplace").decode()
        if self._colour:
            mark = f"\x1b[{number}m{mark}\x1b[0m"
        line = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}{self._process}  {mark}  {text}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def line_of(event: Event) -> str:
    """Return what a line says of an event, without its time and symbol."""
    if isinstance(event, JobEvent):
        head = f"#{short(event.job_id)} {event.fn_path}"
        return f"{head:<{_PATH_WIDTH + 10}}  {_job_text(event)}".rstrip()
    if isinstance(event, CronEvent):
        name = f"{event.space}/{event.name}" if event.space else event.name
        return f"{'cron ' + name:<{_PATH_WIDTH + 10}}  {_cron_text(event)}".rstrip()
    return event.text


def printable(text: str) -> str:
    """Return ``text`` with line breaks and control characters shown as escapes."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def spoken(duration: timedelta) -> str:
    """Return a duration as a person says it: 12 ms, 5 s, 3 min 5 s, 2 h."""
    seconds = max(0.0, duration.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    hours, rest = divmod(round(seconds), 3600)
    minutes, left = divmod(rest, 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else "", f"{left} s" if left else ""]
    return " ".join([part for part in parts if part][:2])


def when(moment: datetime | None, tz: str) -> str:
    """Return an instant in a zone and in UTC: Mon 07:30:00 CET (06:30:00 UTC)."""
    if moment is None:
        return "no further occurrence"
    utc = moment.astimezone(UTC)
    try:
        local = moment.astimezone(zone(tz))
    except UnknownZone:
        local = utc
    shown = f"{local:%a %d %b %H:%M:%S %Z}"
    return shown if local.utcoffset() == timedelta(0) else f"{shown} ({utc:%H:%M:%S} UTC)"


def _glyph(event: Event | None, level: int) -> tuple[str, str, int]:
    if event is not None and event.what in _GLYPHS:
        return _GLYPHS[event.what]
    return _ALARM if level >= logging.WARNING else _NEUTRAL


def _started(event: JobEvent) -> str:
    if event.late is not None:
        return f"cron, {spoken(event.late)} late"
    return "" if event.waited is None else f"waited {spoken(event.waited)}"


def _succeeded(event: JobEvent) -> str:
    parts = [_ran(event)]
    if event.failures:
        parts.append(f"try {event.failures + 1}/{event.max_failures}")
    return ", ".join(parts) + (f"   {event.text}" if event.text else "")


def _failed(event: JobEvent) -> str:
    return f"{event.text}   try {event.failures}/{event.max_failures}, final"


def _retried(event: JobEvent) -> str:
    return f"{event.text}   try {event.failures}/{event.max_failures}, {_again(event)}"


def _snoozed(event: JobEvent) -> str:
    return f"{_ran(event)}, {_again(event)}, as it asked"


def _canceled(event: JobEvent) -> str:
    return f"canceled after {_ran(event)}"


def _lost(event: JobEvent) -> str:
    return "not this worker's any more: what it did here was dropped"


def _swept(event: JobEvent) -> str:
    return f"{event.text}   {_again(event) if event.retry_in is not None else 'final'}"


_JOB_TEXTS: dict[What, Callable[[JobEvent], str]] = {
    What.JOB_STARTED: _started,
    What.JOB_SUCCEEDED: _succeeded,
    What.JOB_FAILED: _failed,
    What.JOB_RETRIED: _retried,
    What.JOB_SNOOZED: _snoozed,
    What.JOB_CANCELED: _canceled,
    What.JOB_LOST: _lost,
    What.JOB_SWEPT: _swept,
    What.JOB_RELEASED: lambda _: "given back unrun",
}


def _job_text(event: JobEvent) -> str:
    tell = _JOB_TEXTS.get(event.what)
    return event.text if tell is None else tell(event)


def _cron_text(event: CronEvent) -> str:
    following = f"next {when(event.next_run_at, event.tz)}"
    if event.what is What.CRON_FIRED:
        late = "" if event.late is None else f", {spoken(event.late)} late"
        return f"fired {event.fired}{late}; {following}"
    if event.what in {What.CRON_MISSED, What.CRON_SKIPPED}:
        return f"{event.missed} missed: {event.text}; {following}"
    if event.what is What.CRON_PLANNED:
        return following
    if event.what is What.CRON_RACED:
        return "another process was first"
    return f"does not fire any more until it is mended: {event.text}"


def _ran(event: JobEvent) -> str:
    return "" if event.ran is None else spoken(event.ran)


def _again(event: JobEvent) -> str:
    return "" if event.retry_in is None else f"again in {spoken(event.retry_in)}"
