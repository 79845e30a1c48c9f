"""What operators type: durations, instants and their own names."""

from __future__ import annotations

import getpass
import re
import socket
from argparse import ArgumentTypeError
from datetime import datetime, timedelta

from django.utils import timezone

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_LONGEST = 100 * 365 * 86_400


def duration(text: str) -> timedelta:
    """Return "90", "90s", "10m", "2h" or "1d" as a duration."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ArgumentTypeError(f'"{text}" is not a duration: write 90, 90s, 10m, 2h or 1d.')
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST:
        raise ArgumentTypeError(f'"{text}" is longer than a hundred years.')
    return timedelta(seconds=seconds)


def instant(text: str) -> datetime | timedelta:
    """Return an ISO 8601 time, one without an offset in the project's TIME_ZONE; or a duration from now."""
    try:
        return duration(text)
    except ArgumentTypeError:
        pass
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentTypeError(
            f'"{text}" is neither a time (2026-12-01T08:00, or 2026-12-01T08:00+01:00) nor a duration (30m, 2h).'
        ) from None
    return timezone.make_aware(moment, timezone.get_default_timezone()) if moment.utcoffset() is None else moment


def this_person() -> str:
    """Return who types here, as "ada@web1"."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        name = "somebody"
    return f"{name}@{socket.gethostname()}"
