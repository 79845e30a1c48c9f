"""The row of a cron, as its declaration wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .changes import anchor_at
from .cron import CronSnapshot
from .occurrences import first_occurrence

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from .cron import CronDeclaration


def wanted(declaration: CronDeclaration) -> dict[str, Any]:
    """Give what a declaration decides. Pause, counters and history belong to the row."""
    return {
        "spec": declaration.spec,
        "tz": declaration.tz,
        "catch_up": declaration.catch_up,
        "overlap": declaration.overlap,
        "jitter": declaration.jitter,
        "start": declaration.start,
        "end": declaration.end,
        "fn_path": declaration.fn_path,
        "args": list(declaration.args),
        "kwargs": dict(declaration.kwargs),
        "enabled": declaration.enabled,
        "queue": declaration.queue,
        "priority": declaration.priority,
        "max_failures": declaration.max_failures,
    }


def new_row(  # who declares what, and when
    declaration: CronDeclaration,
    now: datetime,
    *,
    new_id: Callable[[], UUID],
    declared_by: str,
    declared_at: datetime,
    tzdata_version: str,
) -> CronSnapshot:
    """Give the first row of a cron: due at its first occurrence after ``now``.

    Raise InvalidSchedule for a bad spec or zone.
    """
    start, end = declaration.start, declaration.end
    anchor = anchor_at(now, start)
    return CronSnapshot(
        id=new_id(),
        source=declaration.source,
        space=declaration.space,
        name=declaration.name,
        **wanted(declaration),
        anchor=anchor,
        next_run_at=first_occurrence(declaration.spec, declaration.tz, now, anchor=anchor, start=start, end=end),
        counted_since=now,
        declared_by=declared_by,
        declared_at=declared_at,
        tzdata_version=tzdata_version,
    )
