"""The records of a cron, and its words: what code declares, what a row holds, what a firing did."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django_helisched.crons.words import CatchUp, FireOutcome, Overlap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

__all__ = [
    "CatchUp",
    "CronDeclaration",
    "CronSnapshot",
    "FireOutcome",
    "FireSnapshot",
    "Overlap",
    "key_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FireSnapshot:
    """What became of one occurrence, or of a run of ``count`` missed ones, both ends included."""

    cron_id: UUID
    due_at: datetime
    last_due_at: datetime
    count: int
    outcome: str
    job_id: UUID | None
    lateness: timedelta
    reason: str
    decided_at: datetime


def key_of(source: str, space: str, name: str) -> str:
    """Give the text under which workers report the crons that they declare."""
    return f"{source}:{space}:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CronDeclaration:
    """A cron as code, a provider or an operator wants it.

    ``spec`` is canonical JSON text (``spec.to_json()``), so that equal schedules are
    equal strings. ``start`` and ``end`` are aware and both inclusive. ``origin`` is
    ``file:line`` for messages and is not stored.
    """

    source: str = "code"
    space: str = ""
    name: str
    spec: str
    tz: str = "UTC"
    catch_up: CatchUp = CatchUp.FIRE_ONCE
    overlap: Overlap = Overlap.ALLOW
    jitter: timedelta = timedelta(0)
    start: datetime | None = None
    end: datetime | None = None
    fn_path: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    queue: str | None = None
    priority: int | None = None
    max_failures: int | None = None
    origin: str = ""

    @property
    def key(self) -> str:
        """Give ``source:space:name``."""
        return key_of(self.source, self.space, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSnapshot:
    """One row of the cron table, as it was read.

    ``next_run_at`` is the stored truth: the next occurrence to fire, or None when the
    cron has none left. ``version`` grows by one with every write; together with ``id``
    it is what a compare-and-set compares. ``anchor`` is the phase of an interval.
    """

    id: UUID
    source: str = "code"
    space: str = ""
    name: str
    spec: str
    tz: str = "UTC"
    catch_up: CatchUp = CatchUp.FIRE_ONCE
    overlap: Overlap = Overlap.ALLOW
    jitter: timedelta = timedelta(0)
    start: datetime | None = None
    end: datetime | None = None
    anchor: datetime
    fn_path: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    paused_at: datetime | None = None
    paused_by: str = ""
    pause_reason: str = ""
    archived_at: datetime | None = None
    queue: str | None = None
    priority: int | None = None
    max_failures: int | None = None
    next_run_at: datetime | None = None
    last_fire_at: datetime | None = None
    fired: int = 0
    missed: int = 0
    counted_since: datetime
    version: int = 1
    declared_by: str = ""
    declared_at: datetime
    tzdata_version: str = ""
    last_error: str = ""

    @property
    def key(self) -> str:
        """Give ``source:space:name``."""
        return key_of(self.source, self.space, self.name)

    @property
    def is_active(self) -> bool:
        """Say whether the cron may fire: enabled in code, not paused, not archived."""
        return self.enabled and self.paused_at is None and self.archived_at is None
