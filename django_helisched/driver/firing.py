"""Turn the crons that are due into jobs, each by itself."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django_helisched import signals
from django_helisched.crons.catch_up import plan_firing
from django_helisched.crons.cron import FireOutcome, Overlap
from django_helisched.driver.events import CronEvent, What
from django_helisched.driver.patience import is_outage
from django_helisched.exceptions import Busy
from django_helisched.functions.occurrence import Defaults, Occurrence, job_for
from django_helisched.stores.base import PlannedFiring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django_helisched.crons.catch_up import FiringPlan
    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.events import Announcer
    from django_helisched.jobs.job import NewJob
    from django_helisched.stores.base import CronStore, JobStore

logger = logging.getLogger("django_helisched.driver")

CRON_LIMIT = 100  # crons of one look, so that a pass stays bounded
PLANS_TOLD = 10  # crons announced at the start: as many as fit under a banner
_ERROR_LENGTH = 500  # as Cron.last_error holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """What one look at the due crons did, and when the next one is due."""

    jobs: int = 0
    look_again: bool = False
    next_due_at: datetime | None = None


class Firing:
    """Fires due crons. Whoever moves the row first has fired it; the others go on."""

    def __init__(self, jobs: JobStore, crons: CronStore, config: DriverConfig, announce: Announcer) -> None:
        self._jobs = jobs
        self._crons = crons
        self._config = config
        self._announce = announce
        self._defaults = Defaults(
            timeout=config.timeout, max_failures=config.max_failures, app_version=config.app_version
        )

    def fire(self, now: datetime) -> Fired:
        """Fire what is due at ``now``. A cron that cannot be fired is parked with its error; an outage raises."""
        next_due_at = self._crons.next_due_at()
        if next_due_at is None or next_due_at > now:
            return Fired(next_due_at=next_due_at)
        due = self._crons.due(limit=CRON_LIMIT)
        planned = [self._plan_alone(cron) for cron in due]
        made = self._fire_all([firing for firing in planned if firing is not None])
        moved = [count for count in made if count is not None]
        return Fired(
            jobs=sum(moved),
            # One that was parked has moved, too.
            look_again=len(due) == CRON_LIMIT and bool(moved or None in planned),
            next_due_at=self._crons.next_due_at(),
        )

    def _fire_all(self, firings: Sequence[PlannedFiring]) -> list[int | None]:
        """Fire crons and return the jobs of each; None: it did not move."""
        together = [firing for firing in firings if not firing.plan.cancels_live_jobs]
        made = self._fire_together(together) if len(together) > 1 else None
        alone = firings if made is None else [firing for firing in firings if firing.plan.cancels_live_jobs]
        return [*(made or ()), *(self._fire_alone(firing) for firing in alone)]

    def _fire_together(self, firings: Sequence[PlannedFiring]) -> list[int | None] | None:
        """Fire many crons in one transaction; None: one of them spoiled it for all."""
        try:
            answers = self._crons.fire_together(firings)
        except Exception as error:
            if is_outage(error):
                raise
            return None
        return [self._told(firing, fired=fired) for firing, fired in zip(firings, answers, strict=True)]

    def _fire_alone(self, firing: PlannedFiring) -> int | None:
        """Fire one cron and return the jobs made; None: another process was first, or it must wait."""
        try:
            return self._told(firing, fired=self._crons.fire(firing.cron, firing.plan, firing.jobs))
        except Exception as error:
            if is_outage(error):
                raise
            if isinstance(error, Busy) or self._jobs.is_transient(error):
                return None
            return self._park(firing.cron, error)

    def _plan_alone(self, cron: CronSnapshot) -> PlannedFiring | None:
        """Decide what a due cron does; one that cannot be read is parked."""
        try:
            return self._plan(cron)
        except Exception as error:
            if is_outage(error):
                raise
            self._park(cron, error)
            return None

    def _plan(self, cron: CronSnapshot) -> PlannedFiring:
        now = self._crons.now()
        live = self._crons.live_jobs(cron.id) if cron.overlap == Overlap.SKIP else 0
        plan = plan_firing(
            cron,
            now,
            catchup_cap=self._config.catchup_cap,
            misfire_grace=self._config.misfire_grace,
            live_jobs=live,
        )
        jobs = [self._new_job(cron, plan, number, now) for number in range(len(plan.fires))]
        return PlannedFiring(cron=cron, plan=plan, jobs=jobs)

    def _told(self, firing: PlannedFiring, *, fired: bool) -> int | None:
        if not fired:
            self._announce(_told(firing.cron, What.CRON_RACED))
            return None
        self._tell(firing.cron, firing.plan)
        return len(firing.jobs)

    def _new_job(self, cron: CronSnapshot, plan: FiringPlan, number: int, now: datetime) -> NewJob:
        # What was missed lies before the oldest occurrence that is made up for.
        facts = _missed(plan) if number == 0 else {}
        return job_for(cron, Occurrence(due_at=plan.fires[number].due_at, now=now, facts=facts), self._defaults)

    def _park(self, cron: CronSnapshot, error: Exception) -> int | None:
        text = f"{type(error).__name__}: {error}"[:_ERROR_LENGTH]
        if not self._crons.park(cron, text):
            return None
        logger.debug("The cron %s was parked.", cron.name, exc_info=error)
        self._announce(_told(cron, What.CRON_PARKED, text=text))
        return 0

    def tell_plans(self) -> None:
        """Announce when the soonest crons fire next."""
        active = [cron for cron in self._crons.list() if cron.is_active and cron.next_run_at is not None]
        for cron in sorted(active, key=lambda cron: (cron.next_run_at, cron.id))[:PLANS_TOLD]:
            self._announce(_told(cron, What.CRON_PLANNED, next_run_at=cron.next_run_at))

    def _tell(self, cron: CronSnapshot, plan: FiringPlan) -> None:
        if plan.fires:
            late = plan.fires[-1].lateness
            fired = _told(
                cron,
                What.CRON_FIRED,
                fired=len(plan.fires),
                missed=plan.missed,
                late=late,
                next_run_at=plan.next_run_at,
            )
            self._announce(fired)
        for run in plan.missed_runs:
            what = What.CRON_SKIPPED if run.outcome is FireOutcome.SKIPPED_OVERLAP else What.CRON_MISSED
            self._announce(_told(cron, what, missed=run.count, next_run_at=plan.next_run_at, text=run.reason))
        facts = {"cron_id": cron.id, "name": cron.name, "fired": len(plan.fires), "missed": plan.missed}
        self._announce.send(signals.cron_fired, **facts)


def _missed(plan: FiringPlan) -> dict[str, Any]:
    if plan.first_missed_at is None:
        return {}
    return {"missed": plan.missed, "first_missed_at": plan.first_missed_at.isoformat()}


def _told(cron: CronSnapshot, what: What, **facts: Any) -> CronEvent:
    return CronEvent(what=what, cron_id=cron.id, name=cron.name, space=cron.space, tz=cron.tz, **facts)
