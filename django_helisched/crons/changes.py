"""What a change of a cron's row does to its due time: one rule for deploys and operators.

A new schedule, and waking up (enabled, resumed, back from the archive), start from the next
occurrence after now. What is overdue then, or when a cron goes to sleep, is dropped and
counted as missed. Everything else keeps the due time, so that an overdue occurrence
survives a deploy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from .backlog import MissedRun, backlog_of, next_due
from .cron import FireOutcome
from .refusals import InvalidSchedule
from .spec import IntervalSpec, parse_spec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from .cron import CronSnapshot

_ERROR_LENGTH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class CronUpdate:
    """Fields to write on one row, under compare-and-set on ``id`` and ``version``.

    ``dropped`` are the overdue occurrences that the change gives up: ``fields`` counts them
    in ``missed`` already, and they want a Fire row. ``reason`` is for people.
    """

    id: UUID
    version: int
    name: str
    fields: Mapping[str, Any]
    reason: str
    dropped: MissedRun | None = None


def plan_update(
    cron: CronSnapshot, changes: Mapping[str, Any], now: datetime, *, tzdata_version: str, reason: str
) -> CronUpdate | None:
    """Complete ``changes`` with what they do to the due time; None when nothing changes.

    Never raises for a bad schedule: such a row is parked, without a due time and with its
    error. Newer time zone data moves a due time that has not come yet; older leaves it, so
    that two workers with different data do not move it to and fro.
    """
    after = replace(cron, **changes)
    dropped = None
    if _starts_anew(cron, after, now) or cron.is_active != after.is_active:
        dropped = _dropped(cron, now, reason) if cron.is_active else None
        after = _rescheduled(cron, after, now)
    elif _is_worth_another_look(after, now, tzdata_version):
        after = _rescheduled(cron, after, now)
    if after.tzdata_version < tzdata_version:
        after = replace(after, tzdata_version=tzdata_version)
    if dropped is not None:
        after = replace(after, missed=after.missed + dropped.count)
    values = ((field.name, getattr(cron, field.name), getattr(after, field.name)) for field in fields(after))
    changed = {name: new for name, old, new in values if not is_same(old, new)}
    if not changed:
        return None
    return CronUpdate(id=cron.id, version=cron.version, name=cron.name, fields=changed, reason=reason, dropped=dropped)


def is_same(stored: Any, wanted: Any) -> bool:
    """Say whether two values of a field are stored alike."""
    if isinstance(wanted, list | dict):
        # As JSON: to Python [1], [True] and [1.0] are equal.
        return json.dumps(stored, sort_keys=True) == json.dumps(wanted, sort_keys=True)
    return bool(stored == wanted)


def anchor_at(now: datetime, start: datetime | None) -> datetime:
    """Choose the phase of a new interval: its ``start``, or else now, in whole milliseconds."""
    moment = now if start is None else start
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _starts_anew(cron: CronSnapshot, after: CronSnapshot, now: datetime) -> bool:
    if cron.spec != after.spec:
        return True
    if cron.tz != after.tz and not _is_interval(after.spec):
        return True
    if (cron.start, cron.end) == (after.start, after.end):
        return False
    due_at = _overdue_since(cron, now)
    return due_at is None or not _lies_within(due_at, after)


def _is_worth_another_look(cron: CronSnapshot, now: datetime, tzdata_version: str) -> bool:
    if cron.next_run_at is None:
        return cron.is_active
    return cron.tzdata_version < tzdata_version and _overdue_since(cron, now) is None


def _is_interval(spec: str) -> bool:
    try:
        return isinstance(parse_spec(spec), IntervalSpec)
    except InvalidSchedule:
        return False


def _overdue_since(cron: CronSnapshot, now: datetime) -> datetime | None:
    return cron.next_run_at if cron.next_run_at is not None and cron.next_run_at <= now else None


def _lies_within(due_at: datetime, cron: CronSnapshot) -> bool:
    return (cron.start is None or cron.start <= due_at) and (cron.end is None or due_at <= cron.end)


def _rescheduled(cron: CronSnapshot, after: CronSnapshot, now: datetime) -> CronSnapshot:
    if cron.spec != after.spec or (cron.start != after.start and after.start is not None):
        after = replace(after, anchor=anchor_at(now, after.start))
    if after.archived_at is not None:
        return replace(after, next_run_at=None)
    try:
        return replace(after, next_run_at=next_due(after, now), last_error="")
    except InvalidSchedule as error:
        return replace(after, next_run_at=None, last_error=str(error)[:_ERROR_LENGTH])


def _dropped(cron: CronSnapshot, now: datetime, reason: str) -> MissedRun | None:
    due_at = _overdue_since(cron, now)
    if due_at is None:
        return None
    try:
        backlog = backlog_of(cron, now)
    except InvalidSchedule:
        # Of a schedule that cannot be read any more only the promised occurrence is known.
        return MissedRun(due_at=due_at, last_due_at=due_at, count=1, outcome=FireOutcome.MISSED, reason=reason)
    return None if backlog is None else backlog.before(None, FireOutcome.MISSED, reason)
