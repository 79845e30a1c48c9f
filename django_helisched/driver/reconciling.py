"""When a driver makes the rows of crons equal to what its code declares, and what it says of that."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django_helisched.driver.events import DriverEvent, What
from django_helisched.scheduler import reconciling
from django_helisched.scheduler.declarations import find_declarations
from django_helisched.scheduler.reconciling import CODE, Declarer

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django_helisched.crons.registry import CronJobs
    from django_helisched.driver.events import Announcer
    from django_helisched.driver.identity import Identity
    from django_helisched.stores.base import CronStore, JobStore, WorkerReport

# As often as a cron whose declarer is gone is taken over, and the providers are asked.
EVERY = timedelta(minutes=15)

# A process that has not reported for so many leases counts as gone. It reports every third of one.
LEASES = 3


class Reconciling:
    """Reconciles the crons of code and of providers, at the start and every 15 minutes."""

    def __init__(
        self,
        jobs: JobStore,
        crons: CronStore,
        identity: Identity,
        report: Callable[[], WorkerReport],
        announce: Announcer,
    ) -> None:
        self._jobs = jobs
        self._crons = crons
        self._identity = identity
        self._report = report
        self._announce = announce
        self._next_at: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Tell whether it is time again; the first time is the boot's to choose."""
        return self._next_at is not None and now >= self._next_at

    def reconcile(self) -> None:
        """Apply what the code declares; where it has no list of crons, change nothing and say so."""
        declared = find_declarations()
        self._identity.declarations = () if declared is None else reconciling.declared_keys(declared)
        # First of all: another process that reconciles now must not archive what this one declares.
        self._jobs.report_worker(self._report())
        if declared is None:
            self._tell_left_alone()
        else:
            self._apply(declared)
        self._next_at = self._crons.now() + EVERY

    def _apply(self, declared: CronJobs) -> None:
        declarer = Declarer(name=self._identity.worker_id, booted_at=self._identity.started_at)
        alive_within = LEASES * self._identity.lease
        round_ = reconciling.Reconciling(self._jobs, self._crons, declarer, alive_within=alive_within)
        for text in round_.apply(declared, periodic=self._next_at is not None).notices:
            self._notice(text)

    def _tell_left_alone(self) -> None:
        rows = self._crons.list()
        active = [row for row in rows if row.is_active and row.source.startswith((CODE, reconciling.PROVIDER))]
        if active:
            self._notice(
                f"This project has no cron_jobs() list, but {len(active)} crons of code are stored; they were left "
                "as they are. If they are to go, declare an empty list: crons = cron_jobs() in a crons.py."
            )

    def _notice(self, text: str) -> None:
        self._announce(DriverEvent(what=What.DRIVER_NOTICE, text=text))
