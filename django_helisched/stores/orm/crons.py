"""OrmCronStore: the cron contract on the project's database."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, connections, transaction
from django.db.models import F

from django_helisched.crons.cron import CronSnapshot
from django_helisched.jobs.ids import uuid7
from django_helisched.models import Cron
from django_helisched.stores.base import PRUNE_LIMIT, CronStore, PlannedFiring, Pruned
from django_helisched.stores.orm import backfilling, firing, pruning
from django_helisched.stores.orm.connection import is_duplicate_key, once_more
from django_helisched.stores.orm.operating import live_jobs_of
from django_helisched.stores.orm.telling import Telling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from django_helisched.crons.backfill import BackfillPlan
    from django_helisched.crons.catch_up import FiringPlan
    from django_helisched.crons.changes import CronUpdate
    from django_helisched.crons.cron import FireSnapshot
    from django_helisched.crons.reconcile import ReconcilePlan
    from django_helisched.jobs.job import NewJob
    from django_helisched.stores.base import Teller
    from django_helisched.stores.clock import Clock

_COLUMNS = tuple(item.name for item in fields(CronSnapshot))
_TRIES = 3  # reconciles that insert the same new name at the same moment


class OrmCronStore(CronStore):
    """Crons in the database ``alias``. Every verb keeps the contract of ``CronStore``."""

    def __init__(
        self, alias: str, clock: Clock, new_id: Callable[[], UUID] = uuid7, *, teller: Teller | None = None
    ) -> None:
        self._alias = alias
        self._clock = clock
        self._new_id = new_id
        self._tell = Telling(alias, teller)

    def now(self) -> datetime:
        return self._clock.now()

    def reconcile(
        self, source: str, space: str, plan: Callable[[Sequence[CronSnapshot], datetime], ReconcilePlan]
    ) -> ReconcilePlan:
        for _ in range(_TRIES - 1):
            try:
                return once_more(self._alias, lambda: self._reconcile(source, space, plan))
            except IntegrityError as error:
                if not is_duplicate_key(error):
                    raise
        return self._reconcile(source, space, plan)

    def _reconcile(
        self, source: str, space: str, plan: Callable[[Sequence[CronSnapshot], datetime], ReconcilePlan]
    ) -> ReconcilePlan:
        with transaction.atomic(using=self._alias):
            rows = self._rows().filter(source=source, space=space).order_by("id")
            if connections[self._alias].features.has_select_for_update:
                rows = rows.select_for_update()
            else:  # SQLite: a write first, since a read lock that has to grow fails at once
                self._rows().filter(source=source, space=space).update(version=F("version"))
            now = self.now()
            planned = plan([snapshot(row) for row in rows], now)
            firing.apply_reconcile(self._alias, planned, now)
        self._tell.due(planned.inserts or planned.updates)
        return planned

    def due(self, *, limit: int) -> Sequence[CronSnapshot]:
        rows = self._active().filter(next_run_at__lte=self.now()).order_by("next_run_at", "id")
        return [snapshot(row) for row in rows[:limit]]

    def live_jobs(self, cron_id: UUID) -> int:
        return live_jobs_of(self._alias, cron_id).count()

    def fire(self, cron: CronSnapshot, plan: FiringPlan, jobs: Sequence[NewJob]) -> bool:
        fired = partial(firing.fire, self._alias, cron, plan, jobs, new_id=self._new_id, now=self.now())
        moved = once_more(self._alias, fired)
        self._tell.due(moved and jobs)
        self._tell.canceled(moved and plan.cancels_live_jobs)
        return moved

    def fire_together(self, firings: Sequence[PlannedFiring]) -> Sequence[bool]:
        moved = once_more(self._alias, partial(firing.fire_together, self._alias, firings, self.now()))
        self._tell.due(any(one.jobs for one, has_moved in zip(firings, moved, strict=True) if has_moved))
        return moved

    def backfill(self, cron: CronSnapshot, plan: BackfillPlan, jobs: Sequence[NewJob]) -> bool:
        done = backfilling.backfill(self._alias, cron, plan, jobs, self.now())
        self._tell.due(done)
        return done

    def prune_fires(
        self, decided_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        return pruning.prune_fires(self._alias, decided_before, after=after, limit=limit, pretend=pretend)

    def park(self, cron: CronSnapshot, error: str) -> bool:
        rows = self._rows().filter(pk=cron.id, version=cron.version)
        return bool(rows.update(next_run_at=None, last_error=error[:500], version=F("version") + 1))

    def change(self, update: CronUpdate) -> bool:
        with transaction.atomic(using=self._alias):
            changed = firing.apply_update(self._alias, update, self.now())
        self._tell.due(changed)
        return changed

    def next_due_at(self) -> datetime | None:
        return self._active().order_by("next_run_at").values_list("next_run_at", flat=True).first()

    def get(self, cron_id: UUID) -> CronSnapshot | None:
        row = self._rows().filter(pk=cron_id).first()
        return None if row is None else snapshot(row)

    def fires_of(
        self, cron_id: UUID, *, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[FireSnapshot]:
        return firing.fires_of(self._alias, cron_id, since, until)

    def list(self, *, source: str | None = None, space: str | None = None) -> Sequence[CronSnapshot]:
        wanted = {"source": source, "space": space}
        rows = self._rows().filter(**{key: value for key, value in wanted.items() if value is not None})
        return [snapshot(row) for row in rows.order_by("source", "space", "name")]

    def find(self, name: str, *, space: str = "") -> Sequence[CronSnapshot]:
        return [snapshot(row) for row in self._rows().filter(name=name, space=space).order_by("source")]

    def _rows(self) -> QuerySet[Cron]:
        return Cron.objects.using(self._alias)

    def _active(self) -> QuerySet[Cron]:
        return self._rows().filter(
            next_run_at__isnull=False, enabled=True, paused_at__isnull=True, archived_at__isnull=True
        )


def snapshot(row: Cron) -> CronSnapshot:
    """Return the record of a model instance."""
    return CronSnapshot(**{name: getattr(row, name) for name in _COLUMNS})
