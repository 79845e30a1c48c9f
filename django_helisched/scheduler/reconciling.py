"""Make the rows of crons equal to what code and its providers declare, space by space."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from django_helisched.crons.providers import in_space
from django_helisched.crons.reconcile import plan_reconcile
from django_helisched.crons.wall_clock import tzdata_version
from django_helisched.jobs.ids import uuid7
from django_helisched.scheduler.checking import problem_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from django_helisched.crons.cron import CronDeclaration, CronSnapshot
    from django_helisched.crons.providers import Entries, Provider
    from django_helisched.crons.reconcile import ReconcilePlan
    from django_helisched.crons.registry import CronJobs
    from django_helisched.stores.base import CronStore, JobStore

logger = logging.getLogger("django_helisched.scheduler")

CODE = "code"
PROVIDER = "provider:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarer:
    """The process that declares. Of two that declare the same the later started has the last word."""

    name: str
    booted_at: datetime


@dataclass(slots=True)
class Reconciled:
    """What was planned for each (source, space), and written; and who was left as it was, and why."""

    plans: dict[tuple[str, str], ReconcilePlan] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def notices(self) -> list[str]:
        """Return what people should hear of, in whole sentences."""
        told = [text for plan in self.plans.values() for text in _notices(plan)]
        return told + [f"The crons of {place} were left as they are: {why}." for place, why in self.failed.items()]


class Reconciling:
    """One round over everything that is declared. What one space, or one provider, does wrong harms its rows alone."""

    def __init__(self, jobs: JobStore, crons: CronStore, declarer: Declarer, *, alive_within: timedelta) -> None:
        self._crons = crons
        self._declarer = declarer
        self._elsewhere = _declared_elsewhere(jobs, declarer, alive_within)
        self._rows: Mapping[tuple[str, str], list[CronSnapshot]] = {}
        self._done = Reconciled()

    def apply(self, declared: CronJobs, *, space: str | None = None, periodic: bool = False) -> Reconciled:
        """Apply everything that is declared, or what is declared for one space.

        A ``periodic`` round leaves a provider to the newest live process that has it, so
        that old and new code do not undo one another's rows.
        """
        self._rows = _by_place(self._crons.list(space=space))
        self._code(declared.entries(), space)
        for provider in declared.providers():
            if not periodic or not self._has_newer(provider.source):
                self._provider(provider, space)
        known = {provider.source for provider in declared.providers()} | set(self._elsewhere)
        for source in sorted({source for source, _ in self._rows if source.startswith(PROVIDER)} - known):
            self._archive(source, self._spaces_of(source))
        return self._done

    def _code(self, entries: Sequence[CronDeclaration], space: str | None) -> None:
        spaces = {entry.space for entry in entries} | self._spaces_of(CODE)
        for each in sorted(spaces if space is None else spaces & {space}):
            self._apply(CODE, each, entries, elsewhere=self._elsewhere)

    def _provider(self, provider: Provider, space: str | None) -> None:
        listed: set[str] = set()
        try:
            for each, entries in provider.spaces():
                listed.add(each)
                if space is None or each == space:
                    self._space(provider, each, entries)
        except Exception as error:
            # Which spaces are left is not known now, so that none is archived.
            self._fail(provider.source, error)
        else:
            self._archive(provider.source, self._spaces_of(provider.source) - listed)

    def _space(self, provider: Provider, space: str, entries: Entries) -> None:
        try:
            declared = in_space(entries, source=provider.source, space=space)
            problems = {entry.name: problem for entry in declared if (problem := problem_of(entry))}
            # Two entries of one name are refused here, before anything is written.
            self._plan(declared, provider.source, space, {}, problems, (), self._declarer.booted_at)
        except Exception as error:
            self._fail(f'{provider.source} in space "{space}"', error)
        else:
            self._apply(provider.source, space, declared, problems=problems)

    def _archive(self, source: str, spaces: Iterable[str]) -> None:
        for space in sorted(spaces):
            self._apply(source, space, ())

    def _apply(
        self,
        source: str,
        space: str,
        declared: Sequence[CronDeclaration],
        *,
        elsewhere: Mapping[str, datetime] | None = None,
        problems: Mapping[str, str] | None = None,
    ) -> None:
        plan: Callable[[Sequence[CronSnapshot], datetime], ReconcilePlan] = partial(
            self._plan, declared, source, space, elsewhere or {}, problems or {}
        )
        # Most often there is nothing to do: no lock for that.
        looked = plan(self._rows.get((source, space), []), self._crons.now())
        self._done.plans[source, space] = looked if looked.is_empty else self._crons.reconcile(source, space, plan)

    def _plan(  # the facts first; the rows come when they are locked
        self,
        declared: Sequence[CronDeclaration],
        source: str,
        space: str,
        elsewhere: Mapping[str, datetime],
        problems: Mapping[str, str],
        rows: Sequence[CronSnapshot],
        now: datetime,
    ) -> ReconcilePlan:
        return plan_reconcile(
            rows,
            declared,
            source=source,
            space=space,
            now=now,
            declared_by=self._declarer.name,
            booted_at=self._declarer.booted_at,
            new_id=uuid7,
            tzdata_version=tzdata_version(),
            declared_elsewhere=elsewhere,
            problems=problems,
        )

    def _spaces_of(self, source: str) -> set[str]:
        """Return the spaces in which a source has rows that are not archived."""
        places = ((place, rows) for place, rows in self._rows.items() if place[0] == source)
        return {space for (_, space), rows in places if any(row.archived_at is None for row in rows)}

    def _has_newer(self, source: str) -> bool:
        newest = self._elsewhere.get(source)
        return newest is not None and newest > self._declarer.booted_at

    def _fail(self, place: str, error: Exception) -> None:
        self._done.failed[place] = f"{type(error).__name__}: {error}".rstrip(".")
        logger.debug("The crons of %s were left as they are.", place, exc_info=error)


def declared_keys(declared: CronJobs) -> tuple[str, ...]:
    """Return the words by which a worker's row says what the worker declares: its crons and its providers."""
    crons = [entry.key for entry in declared.entries()]
    return (*crons, *(provider.source for provider in declared.providers()))


def _declared_elsewhere(jobs: JobStore, declarer: Declarer, alive_within: timedelta) -> dict[str, datetime]:
    newest: dict[str, datetime] = {}
    for worker in jobs.live_workers(alive_within):
        if worker.id == declarer.name:
            continue
        for key in worker.declarations:
            newest[key] = max(worker.started_at, newest.get(key, worker.started_at))
    return newest


def _by_place(rows: Sequence[CronSnapshot]) -> dict[tuple[str, str], list[CronSnapshot]]:
    places: dict[tuple[str, str], list[CronSnapshot]] = defaultdict(list)
    for row in rows:
        places[row.source, row.space].append(row)
    return dict(places)


def _notices(plan: ReconcilePlan) -> list[str]:
    told = [f'The cron "{refused.name}" keeps its row as it is: {refused.reason}.' for refused in plan.refused]
    told += [f'The cron "{name}" is no longer declared and was archived.' for name in plan.archives]
    if plan.dropped:
        told.append(f"{plan.dropped} overdue occurrences of changed crons were given up and count as missed.")
    return told
