"""Instants and durations as people read them. Nothing here raises for the ends of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.html import format_html

from django_helisched.inspection.distances import NOTHING, between, relative, rough, text_of_duration

if TYPE_CHECKING:
    from datetime import tzinfo

    from django.utils.safestring import SafeString

__all__ = [
    "NOTHING",
    "between",
    "compact",
    "full_instant",
    "in_zone",
    "relative",
    "rough",
    "short_instant",
    "text_of_duration",
]


def in_zone(moment: datetime, zone: tzinfo) -> str:
    """Return the wall-clock time of ``zone`` with the zone's abbreviation, UTC past the calendar's ends."""
    try:
        local = moment.astimezone(zone)
    except OverflowError:
        local = moment.astimezone(UTC)
    return f"{local:%a} {local.day} {local:%b %Y %H:%M:%S %Z}"


def compact(moment: datetime, zone: tzinfo, now: datetime) -> str:
    """Return "1 Dec 09:00 CET": seconds where they are not zero, the year where it is not this one."""
    try:
        local = moment.astimezone(zone)
    except OverflowError:
        local = moment.astimezone(UTC)
    date = f"{local.day} {local:%b}" if local.year == now.year else f"{local.day} {local:%b} {local.year}"
    return f"{date} {local:%H:%M:%S %Z}" if local.second else f"{date} {local:%H:%M %Z}"


def short_instant(moment: datetime | None, now: datetime, text: str = "") -> SafeString | str:
    """Return ``text``, or the distance from now, as a <time> element whose title is the full time."""
    if moment is None:
        return NOTHING
    return _element(moment, _full(moment), text or relative(moment, now))


def full_instant(moment: datetime | None, now: datetime) -> SafeString | str:
    """Return the full time, in the current zone and in UTC, and the distance from now."""
    if moment is None:
        return NOTHING
    return format_html("{} ({})", _element(moment, "", _full(moment)), relative(moment, now))


def _full(moment: datetime) -> str:
    universal = in_zone(moment, UTC)
    local = in_zone(moment, timezone.get_current_timezone())
    return universal if local == universal else f"{local} / {universal}"


def _element(moment: datetime, title: str, text: str) -> SafeString:
    stamp = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if not title:
        return format_html('<time datetime="{}">{}</time>', stamp, text)
    return format_html('<time datetime="{}" title="{}">{}</time>', stamp, title, text)
