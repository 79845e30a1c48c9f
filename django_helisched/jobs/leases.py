"""When an expired lease may be taken back.

SQLite has one writer at a time, so a heartbeat can be late without its worker
being dead. A lease is therefore swept on a second look only: seen expired with
the same fence and expiry at least one heartbeat interval ago, with a write of
our own that succeeded in between; or expired for more than a whole lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapse:
    """An expired lease as a look found it."""

    job_id: UUID
    fence: int
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The first look that found a lapse, and whether a write of ours succeeded since."""

    lapse: Lapse
    seen_at: datetime
    written_since: bool = False


def heartbeat_interval(lease: timedelta) -> timedelta:
    """Return how often a lease is renewed: every third of its length."""
    return lease / 3


def confirm_write(seen: Mapping[UUID, Sighting]) -> dict[UUID, Sighting]:
    """Return the sightings after a successful write of this process."""
    return {key: replace(sighting, written_since=True) for key, sighting in seen.items()}


def judge_lapses(
    lapses: Iterable[Lapse], seen: Mapping[UUID, Sighting], *, now: datetime, lease: timedelta
) -> tuple[list[Lapse], dict[UUID, Sighting]]:
    """Return the lapses that may be swept now, and the sightings to bring to the next look."""
    ripe: list[Lapse] = []
    waiting: dict[UUID, Sighting] = {}
    for lapse in lapses:
        earlier = seen.get(lapse.job_id)
        if earlier is None or earlier.lapse != lapse:
            earlier = Sighting(lapse=lapse, seen_at=now)
        if _is_ripe(earlier, now, lease):
            ripe.append(lapse)
        else:
            waiting[lapse.job_id] = earlier
    return ripe, waiting


def _is_ripe(sighting: Sighting, now: datetime, lease: timedelta) -> bool:
    if now - sighting.lapse.lease_expires_at > lease:
        return True
    return sighting.written_since and now - sighting.seen_at >= heartbeat_interval(lease)
