"""What people may create and change at run time, checked as a declaration in code is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_helisched import wiring
from django_helisched.crons.declaring import declare, schedule_of
from django_helisched.crons.operations import EDITABLE
from django_helisched.crons.reconcile import plan_create
from django_helisched.crons.spec import parse_spec
from django_helisched.crons.wall_clock import tzdata_version
from django_helisched.exceptions import InvalidOption
from django_helisched.jobs.ids import uuid7
from django_helisched.scheduler.checking import check_function

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django_helisched.crons.cron import CronDeclaration, CronSnapshot
    from django_helisched.crons.reconcile import ReconcilePlan
    from django_helisched.crons.spec import Spec

SOURCES = ("operator", "api")

_WRITTEN = frozenset({"expr", "every", "fn", "args"})
_OPTIONS = EDITABLE - {"spec", "fn_path", "args", "kwargs"}


def store_new(declaration: CronDeclaration, *, source: str, by: str) -> CronSnapshot:
    """Store a checked declaration as a new row; raise InvalidOption where its name is taken."""
    if source not in SOURCES:
        raise InvalidOption(f'source={source!r} must be "operator" or "api".')
    placed = replace(declaration, source=source)

    def plan(rows: Sequence[CronSnapshot], now: datetime) -> ReconcilePlan:
        return plan_create(rows, placed, now=now, by=by, new_id=uuid7, tzdata_version=tzdata_version())

    store = wiring.cron_store()
    store.reconcile(source, placed.space, plan)
    return next(row for row in store.find(placed.name, space=placed.space) if row.source == source)


def fields_of(row: CronSnapshot, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the row with the changes in place, all checked together.

    Raises InvalidOption where the cron is not to be edited, and what ``declare`` and
    ``check_function`` raise.
    """
    refuse_declared(row, "change it there")
    if row.archived_at is not None:
        raise InvalidOption(f'The cron "{row.name}" was deleted. Create it again, and it is the same row.')
    foreign = sorted(set(changes) - _WRITTEN - _OPTIONS)
    if foreign:
        known = ", ".join(sorted(_WRITTEN | _OPTIONS))
        raise TypeError(f'The {", ".join(foreign)} of the cron "{row.name}" cannot be edited; these can: {known}.')
    options = {name: changes.get(name, getattr(row, name)) for name in _OPTIONS}
    args = changes.get("args", row.args or row.kwargs)
    wanted = declare(row.name, lambda: _schedule(row, changes), changes.get("fn", row.fn_path), args, options)
    if "args" not in changes:
        wanted = replace(wanted, args=row.args, kwargs=row.kwargs)
    check_function(wanted)
    return {name: getattr(wanted, name) for name in EDITABLE}


def refuse_declared(row: CronSnapshot, mend: str) -> None:
    """Raise InvalidOption for a cron that code or a provider declares: it would be changed back."""
    if row.source not in SOURCES:
        place = "in code" if row.source == "code" else f"by {row.source}"
        raise InvalidOption(
            f'The cron "{row.name}" is declared {place}: {mend}. Here it would come back with the next reconcile; '
            "pausing it holds."
        )


def _schedule(row: CronSnapshot, changes: Mapping[str, Any]) -> Spec:
    if "expr" in changes or "every" in changes:
        return schedule_of(changes.get("expr"), changes.get("every"))
    return parse_spec(row.spec)
