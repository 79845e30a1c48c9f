"""Move missed occurrences to fired: the jobs appear and the Fire rows change together, or nothing happens."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from django.db import connections, transaction
from django.db.models import F

from django_helisched.crons.backfill import fires_after
from django_helisched.crons.cron import FireSnapshot
from django_helisched.models import Cron, Fire
from django_helisched.stores.orm.inserting import store_all
from django_helisched.stores.orm.new_rows import new_row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django_helisched.crons.backfill import BackfillPlan
    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.jobs.job import NewJob

_FIRE = tuple(item.name for item in fields(FireSnapshot))


class _Gone(Exception):
    """A Fire row of the plan was pruned meanwhile."""


def backfill(alias: str, cron: CronSnapshot, plan: BackfillPlan, jobs: Sequence[NewJob], now: datetime) -> bool:
    """Apply a backfill; see CronStore.backfill."""
    try:
        with transaction.atomic(using=alias):
            return _backfill(alias, cron, plan, jobs, now)
    except _Gone:
        return False


def _backfill(alias: str, cron: CronSnapshot, plan: BackfillPlan, jobs: Sequence[NewJob], now: datetime) -> bool:
    taken = len(plan.due)
    row = Cron.objects.using(alias).filter(pk=cron.id, version=cron.version)
    if not row.update(fired=F("fired") + taken, missed=F("missed") - taken, version=F("version") + 1):
        return False
    replaced = Fire.objects.using(alias).filter(cron_id=cron.id, due_at__in=plan.replaced)
    if replaced.delete()[0] != len(plan.replaced):
        raise _Gone
    store_all(connections[alias], [(job, new_row(job)) for job in jobs])
    rows = fires_after(plan, cron.id, [job.id for job in jobs], now)
    Fire.objects.using(alias).bulk_create([Fire(**{name: getattr(fire, name) for name in _FIRE}) for fire in rows])
    return True
