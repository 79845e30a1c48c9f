"""The five states and the views of them that operators ask for, as words, queries and pills."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import Q
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from django_helisched.jobs.job import Hold, State

if TYPE_CHECKING:
    from datetime import datetime

    from django.utils.functional import _StrPromise
    from django.utils.safestring import SafeString

    from django_helisched.models import Job

SCHEDULED: Final = "scheduled"
RETRYING: Final = "retrying"
HELD: Final = "held"

# In the order of a job's life; the words are what ?state= and state: take.
VIEWS: Final[dict[str, _StrPromise]] = {
    State.PENDING.value: _("pending"),
    SCHEDULED: _("scheduled"),
    RETRYING: _("retrying"),
    HELD: _("held"),
    State.IN_PROGRESS.value: _("in progress"),
    State.SUCCESS.value: _("success"),
    State.FAILED.value: _("failed (dead)"),
    State.CANCELED.value: _("canceled"),
}
# What other systems call them.
ALIASES: Final = {
    "running": State.IN_PROGRESS.value,
    "succeeded": State.SUCCESS.value,
    "dead": State.FAILED.value,
    "cancelled": State.CANCELED.value,
}
# Views of jobs that are not finished: few rows, however old.
LIVE: Final = frozenset({State.PENDING.value, SCHEDULED, RETRYING, HELD, State.IN_PROGRESS.value})

_LABELS: Final[dict[str, _StrPromise]] = {
    **VIEWS,
    State.FAILED.value: _("failed"),
}
_ICONS: Final = {
    State.PENDING.value: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 2a4 4 0 1 1 0 8 4 4 0 0 1 0-8z",
    SCHEDULED: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 2a5 5 0 1 1 0 10A5 5 0 0 1 8 3zM7 4v5h4V7.4H8.6V4z",
    RETRYING: "M8 2a6 6 0 0 1 5 2.7V2h2v6H9V6h2.8A4 4 0 1 0 12 8.5h2A6 6 0 1 1 8 2z",
    HELD: "M3 2h4v12H3zM9 2h4v12H9z",
    State.IN_PROGRESS.value: "M3 1.5v13L14 8z",
    State.SUCCESS.value: "M6.2 13.4 1 8.2l1.8-1.8 3.4 3.4 7-7L15 4.6z",
    State.FAILED.value: "M3.6 1.8 8 6.2l4.4-4.4 1.8 1.8L9.8 8l4.4 4.4-1.8 1.8L8 9.8l-4.4 4.4-1.8-1.8L6.2 8 1.8 3.6z",
    State.CANCELED.value: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 2a5 5 0 0 1 2.9.9l-7 7A5 5 0 0 1 8 3zm4.1 2.1"
    "a5 5 0 0 1-7 7z",
}


def view_named(word: str) -> str | None:
    """Return the view that ``word`` names, by its own word or another system's, or None."""
    word = ALIASES.get(word, word)
    return word if word in VIEWS else None


def condition_of(view: str, now: datetime) -> Q:
    """Return which jobs ``view`` shows."""
    pending = Q(state=State.PENDING.value)
    conditions = {
        SCHEDULED: pending & Q(attempts=0, losses=0, next_run_at__gt=now),
        RETRYING: pending & (Q(attempts__gt=0) | Q(losses__gt=0)),
        HELD: pending & ~Q(hold__in=[Hold.NONE.value, Hold.LATER.value]),
    }
    return conditions.get(view, Q(state=view))


def view_of(job: Job, now: datetime) -> str:
    """Return the narrowest view that shows ``job``."""
    if job.state != State.PENDING:
        return str(job.state)
    if job.hold not in {Hold.NONE, Hold.LATER}:
        return HELD
    if job.attempts or job.losses:
        return RETRYING
    # A due row may be read a moment before its claim: not worth a word of its own.
    next_run_at: datetime | None = job.next_run_at  # None in a damaged row
    is_later = next_run_at is not None and next_run_at > now + timedelta(seconds=1)
    return SCHEDULED if is_later else State.PENDING.value


def pill(view: str, label: str = "") -> SafeString:
    """Return the state as an icon and a word; colour is never the only sign."""
    if view not in VIEWS:
        return format_html('<span class="hs-pill">{}</span>', label or view)
    return format_html(
        '<span class="hs-pill hs-{}"><svg class="hs-icon" viewBox="0 0 16 16" aria-hidden="true">'
        '<path d="{}"/></svg>{}</span>',
        view,
        _ICONS[view],
        label or _LABELS[view],
    )
