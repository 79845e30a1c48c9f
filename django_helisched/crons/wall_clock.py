"""Time zones, read from the tzdata package: the only module that knows them.

The system's copy is never asked, so that every worker with one version of tzdata computes
the same instants, and the process's own zoneinfo settings are neither read nor changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from zoneinfo import ZoneInfo

from .epoch import DAY, EARLIEST, LATEST, SECOND, moment_of, seconds_of
from .refusals import UnknownZone, shown

FIRST_INSTANT = seconds_of(EARLIEST)
LAST_INSTANT = seconds_of(LATEST)

# Two changes that cancel out could hide between two looks. In no zone are changes closer
# than 6.9 days, and no change is larger than a day; tests/pure/crons read all zones to say so.
LOOK_EVERY = 4 * DAY
LARGEST_CHANGE = DAY
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of instants with one offset: ``local = instant + offset``.

    ``before`` is the offset that held until ``start``. A stretch also ends where a year
    ends, without a change of the offset.
    """

    start: int
    end: int
    offset: int
    before: int

    @property
    def gap_end(self) -> int:
        """Give the instant until which times that the clocks jumped over are made up for."""
        return self.start + max(0, self.offset - self.before)

    @property
    def repeat_end(self) -> int:
        """Give the instant until which the clocks show for the second time what they showed."""
        return self.start + max(0, self.before - self.offset)


def zone(key: str) -> ZoneInfo:
    """Give the zone of this exact name. Raise UnknownZone, with the nearest name, for others."""
    if key not in _zone_names():
        raise _unknown(key)
    return _load(key)


def zone_names() -> list[str]:
    """List the names of all zones, in order."""
    return sorted(_zone_names())


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """Give the release of the time zone data, such as ``2026a``."""
    return str(import_module("tzdata").IANA_VERSION)


def stretch_at(key: str, instant: int) -> Stretch:
    """Give the stretch of a zone that an instant lies in."""
    year = moment_of(instant).year
    return next(stretch for stretch in _stretches(key, year) if instant < stretch.end)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


@lru_cache(maxsize=1024)
def _load(key: str) -> ZoneInfo:
    resource = files("tzdata").joinpath("zoneinfo", *key.split("/"))
    with resource.open("rb") as data:
        return ZoneInfo.from_file(data, key=key)


def _unknown(key: str) -> UnknownZone:
    by_folded_name = {name.casefold(): name for name in _zone_names()}
    nearest = get_close_matches(key[:_LONGEST_NAME].casefold(), by_folded_name, n=1)
    hint = f' Did you mean "{by_folded_name[nearest[0]]}"?' if nearest else ""
    return UnknownZone(f"Unknown time zone {shown(key)}.{hint}", reason="unknown time zone", text=key)


@lru_cache(maxsize=8192)
def _stretches(key: str, year: int) -> tuple[Stretch, ...]:
    """Cut a year at its changes. The first stretch may begin with a change of the year before,
    since what a change moves or repeats can reach over New Year.
    """
    first, end = _year_start(year), _year_start(year + 1)
    changes = _changes(zone(key), first - 2 * LARGEST_CHANGE, end)
    start = max(first, FIRST_INSTANT)
    offset = before = _offset(zone(key), start)
    stretches = []
    for instant, offset_before, offset_after in changes:
        if instant > first:
            stretches.append(Stretch(start, instant, offset, before))
        start, before, offset = instant, offset_before, offset_after
    stretches.append(Stretch(start, end, offset, before))
    return tuple(stretches)


def _year_start(year: int) -> int:
    if year > MAXYEAR:
        return LAST_INSTANT + 1
    return seconds_of(datetime(year, 1, 1, tzinfo=UTC))


def _changes(tz: ZoneInfo, first: int, end: int) -> list[tuple[int, int, int]]:
    """Find the changes of the offset in ``[first, end)`` as (instant, before, after)."""
    changes = []
    low, offset = first, _offset(tz, first)
    while low < end - 1:
        high = min(low + LOOK_EVERY, end - 1)
        offset_high = _offset(tz, high)
        if offset_high != offset:
            changes.append((_instant_of_change(tz, low, high), offset, offset_high))
        low, offset = high, offset_high
    return changes


def _instant_of_change(tz: ZoneInfo, low: int, high: int) -> int:
    offset = _offset(tz, low)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(tz, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset(tz: ZoneInfo, instant: int) -> int:
    # Local time must stay within the years 1 to 9999 too; no zone changes at their edges.
    inside = min(max(instant, FIRST_INSTANT + 2 * DAY), LAST_INSTANT - 2 * DAY)
    offset = moment_of(inside).astimezone(tz).utcoffset()
    return 0 if offset is None else offset // SECOND
