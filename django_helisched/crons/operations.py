"""The operator's verbs, as updates of a cron's row that a store writes under compare-and-set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .changes import CronUpdate, plan_update
from .spec import parse_spec
from .wall_clock import tzdata_version, zone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from .cron import CronSnapshot

EDITABLE = frozenset(
    {
        "spec", "tz", "catch_up", "overlap", "jitter", "start", "end", "fn_path", "args", "kwargs",
        "enabled", "queue", "priority", "max_failures",
    }
)  # fmt: skip


def pause(cron: CronSnapshot, now: datetime, *, by: str = "", reason: str = "") -> CronUpdate | None:
    """Keep the cron from firing until it is resumed; None: it is paused so already.

    Occurrences that are overdue already are counted as missed.
    """
    changes = {"paused_at": now, "paused_by": by, "pause_reason": reason}
    return _update(cron, changes, now, "dropped when the cron was paused")


def resume(cron: CronSnapshot, now: datetime) -> CronUpdate | None:
    """Let the cron fire again, from its next occurrence after now; None: it is not paused.

    What fell due during the pause is neither fired nor missed.
    """
    return _update(cron, {"paused_at": None, "paused_by": "", "pause_reason": ""}, now, "resumed")


def archive(cron: CronSnapshot, now: datetime) -> CronUpdate | None:
    """Take the cron out of use for good, its row and history kept; None: it is archived already.

    Occurrences that are overdue are counted as missed.
    """
    changes = {} if cron.archived_at is not None else {"archived_at": now}
    return _update(cron, changes, now, "dropped when the cron was deleted")


def edit(cron: CronSnapshot, now: datetime, changes: Mapping[str, Any]) -> CronUpdate | None:
    """Change what an operator may; None when that changes nothing.

    A new schedule, zone or window starts from the next occurrence after now; other edits
    keep the due time. Raise InvalidSchedule for a bad spec or zone, TypeError for a field
    that an edit cannot set.
    """
    foreign = sorted(set(changes) - EDITABLE)
    if foreign:
        raise TypeError(f"A cron's {', '.join(foreign)} cannot be edited; these can: {', '.join(sorted(EDITABLE))}.")
    if "tz" in changes:
        zone(changes["tz"])
    if "spec" in changes:
        changes = {**changes, "spec": parse_spec(changes["spec"]).to_json()}
    return _update(cron, changes, now, "dropped when the cron was edited")


def _update(cron: CronSnapshot, changes: Mapping[str, Any], now: datetime, reason: str) -> CronUpdate | None:
    return plan_update(cron, changes, now, tzdata_version=tzdata_version(), reason=reason)
