"""How far a running job says it has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django_helisched.jobs.payload import clean_text

MAX_MESSAGE = 300  # characters, as Progress.message holds
_LARGEST = 2**63 - 1  # what a big integer column holds


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReport:
    """``done`` of ``total`` (None: nobody knows), and a line for people."""

    done: int
    total: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSnapshot:
    """The newest report that was stored, and when."""

    done: int
    total: int | None
    message: str
    updated_at: datetime


def storable_report(done: int, total: int | None, message: str) -> ProgressReport:
    """Return a report that any database stores: numbers and text cut to what the columns hold."""
    return ProgressReport(
        done=_fitting(done),
        total=None if total is None else _fitting(total),
        message=clean_text(message)[:MAX_MESSAGE],
    )


def _fitting(number: int) -> int:
    return max(-_LARGEST, min(_LARGEST, number))
