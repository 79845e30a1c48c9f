"""Plan how the rows of one source and space become what is declared. The store applies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from django_helisched.exceptions import InvalidOption

from .changes import CronUpdate, is_same, plan_update
from .cron import CronSnapshot
from .refusals import InvalidSchedule, declared_twice
from .rows import new_row, wanted
from .spec import parse_spec
from .wall_clock import zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from .cron import CronDeclaration

__all__ = ["CronUpdate", "ReconcilePlan", "RefusedDeclaration", "plan_create", "plan_reconcile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedDeclaration:
    """A declaration that leaves its row as it is, and why, as the end of a sentence."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilePlan:
    """The writes that make rows equal to declarations. Planning again after them plans none.

    ``inserts`` and ``updates`` are to be written; the rest is for the log. ``archives`` are
    among the updates.
    """

    inserts: tuple[CronSnapshot, ...] = ()
    updates: tuple[CronUpdate, ...] = ()
    archives: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    refused: tuple[RefusedDeclaration, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Say whether there is nothing to write."""
        return not (self.inserts or self.updates)

    @property
    def dropped(self) -> int:
        """Count the overdue occurrences that the updates give up as missed."""
        return sum(update.dropped.count for update in self.updates if update.dropped is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declarer:
    """The process that declares, and what it knows of the others."""

    now: datetime
    declared_by: str
    booted_at: datetime
    declared_elsewhere: Mapping[str, datetime]
    tzdata_version: str
    new_id: Callable[[], UUID]
    problems: Mapping[str, str]

    def is_outdated_for(self, row: CronSnapshot) -> bool:
        """Say whether newer code wrote the row, and a process newer than this one declares it.

        Of the living processes that declare a cron the newest has the last word: old code
        never takes back what new code declared, but does once the new code is gone.
        """
        newest = self.declared_elsewhere.get(row.key)
        return row.declared_at > self.booted_at and newest is not None and newest > self.booted_at


_Verdict: TypeAlias = CronSnapshot | CronUpdate | RefusedDeclaration | None


def plan_reconcile(  # every fact of the decision is handed in
    rows: Sequence[CronSnapshot],
    declarations: Sequence[CronDeclaration],
    *,
    source: str,
    space: str,
    now: datetime,
    declared_by: str,
    booted_at: datetime,
    new_id: Callable[[], UUID],
    tzdata_version: str,
    declared_elsewhere: Mapping[str, datetime] | None = None,
    problems: Mapping[str, str] | None = None,
) -> ReconcilePlan:
    """Compare the rows of one source and space with its declarations.

    A new cron starts with its first occurrence after ``now``. A row whose declaration is gone
    is archived, and is the same row again when it returns. Rows and declarations of another
    source or space are not looked at. ``declared_elsewhere`` says, by ``key``, when the newest
    other living process that declares a cron was started: such a row is not archived, nor
    changed back by a process older than that. A bad declaration is refused alone, and so is
    one of ``problems``, by its name. Raise InvalidOption when two declarations have one name.
    """
    declarer = _Declarer(
        now=now,
        declared_by=declared_by,
        booted_at=booted_at,
        declared_elsewhere=declared_elsewhere or {},
        tzdata_version=tzdata_version,
        new_id=new_id,
        problems=problems or {},
    )
    declared = _by_name(each for each in declarations if (each.source, each.space) == (source, space))
    existing = {row.name: row for row in rows if (row.source, row.space) == (source, space)}
    verdicts = {name: _compare(existing.get(name), each, declarer) for name, each in declared.items()}
    archives = [_archive(row, declarer) for name, row in existing.items() if name not in declared]
    archived = [update for update in archives if update is not None]
    return ReconcilePlan(
        inserts=tuple(each for each in verdicts.values() if isinstance(each, CronSnapshot)),
        updates=(*(each for each in verdicts.values() if isinstance(each, CronUpdate)), *archived),
        archives=tuple(update.name for update in archived),
        unchanged=tuple(name for name, each in verdicts.items() if each is None),
        refused=tuple(each for each in verdicts.values() if isinstance(each, RefusedDeclaration)),
    )


def plan_create(
    rows: Sequence[CronSnapshot],
    declaration: CronDeclaration,
    *,
    now: datetime,
    by: str,
    new_id: Callable[[], UUID],
    tzdata_version: str,
) -> ReconcilePlan:
    """Add one cron to the rows of its source and space; an archived row of its name is that cron again.

    It starts with its first occurrence after ``now``. Raise InvalidOption when the name is taken.
    """
    row = next((row for row in rows if row.name == declaration.name), None)
    if row is None:
        new = new_row(declaration, now, new_id=new_id, declared_by=by, declared_at=now, tzdata_version=tzdata_version)
        return ReconcilePlan(inserts=(new,))
    if row.archived_at is None:
        place = f' in space "{row.space}"' if row.space else ""
        raise InvalidOption(f'There is a cron "{row.name}" already{place}. Edit it, or give this one another name.')
    unpaused = {"archived_at": None, "paused_at": None, "paused_by": "", "pause_reason": ""}
    changes = {**wanted(declaration), **unpaused, "declared_by": by, "declared_at": now}
    update = plan_update(row, changes, now, tzdata_version=tzdata_version, reason="created again")
    return ReconcilePlan(updates=() if update is None else (update,))


def _by_name(declarations: Iterable[CronDeclaration]) -> dict[str, CronDeclaration]:
    by_name: dict[str, CronDeclaration] = {}
    for declaration in declarations:
        first = by_name.setdefault(declaration.name, declaration)
        if first is not declaration:
            raise declared_twice(declaration.name, first.origin, declaration.origin)
    return by_name


def _compare(row: CronSnapshot | None, declaration: CronDeclaration, declarer: _Declarer) -> _Verdict:
    if declaration.name in declarer.problems:
        return RefusedDeclaration(name=declaration.name, reason=declarer.problems[declaration.name])
    try:
        parse_spec(declaration.spec)
        zone(declaration.tz)
    except InvalidSchedule as error:
        return RefusedDeclaration(name=declaration.name, reason=str(error).rstrip("."))
    if row is None:
        return new_row(
            declaration,
            declarer.now,
            new_id=declarer.new_id,
            declared_by=declarer.declared_by,
            declared_at=declarer.booted_at,
            tzdata_version=declarer.tzdata_version,
        )
    changes = _changes(row, declaration)
    if changes and declarer.is_outdated_for(row):
        return RefusedDeclaration(
            name=row.name, reason=f"{row.declared_by} has newer code, which declares this cron otherwise"
        )
    reason = f"the declaration changed: {', '.join(changes)}"
    if changes:
        changes |= {"declared_by": declarer.declared_by, "declared_at": declarer.booted_at}
    return plan_update(row, changes, declarer.now, tzdata_version=declarer.tzdata_version, reason=reason)


def _changes(row: CronSnapshot, declaration: CronDeclaration) -> dict[str, Any]:
    changes = {name: value for name, value in wanted(declaration).items() if not is_same(getattr(row, name), value)}
    if row.archived_at is not None:
        changes["archived_at"] = None
    return changes


def _archive(row: CronSnapshot, declarer: _Declarer) -> CronUpdate | None:
    if row.archived_at is not None or row.key in declarer.declared_elsewhere:
        return None
    return plan_update(
        row,
        {"archived_at": declarer.now},
        declarer.now,
        tzdata_version=declarer.tzdata_version,
        reason="no longer declared",
    )
