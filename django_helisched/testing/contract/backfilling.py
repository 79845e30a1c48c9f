"""CronStore.backfill: missed occurrences become jobs, each once."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django_helisched.crons.backfill import plan_backfill
from django_helisched.crons.catch_up import FiringPlan
from django_helisched.jobs.job import Trigger
from django_helisched.testing.contract.cron_factories import (
    MINUTE,
    current,
    inserted,
    job_of,
    missed_run,
    new_cron,
    update_of,
)
from django_helisched.testing.contract.factories import START, all_jobs, undone

if TYPE_CHECKING:
    from datetime import datetime

    from django_helisched.crons.backfill import BackfillPlan
    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.jobs.job import NewJob
    from django_helisched.stores.base import CronStore, JobStore
    from django_helisched.testing.clock import ManualClock


class BackfillContract:
    """What was missed from START to START + 9 minutes is made up for."""

    def test_missed_occurrences_become_jobs_and_are_counted_as_fired(
        self, crons: CronStore, store: JobStore, clock: ManualClock
    ) -> None:
        cron = _behind(crons)
        clock.advance(MINUTE)
        plan = _plan(crons, cron, START + 2 * MINUTE, START + 4 * MINUTE)
        jobs = _jobs(store, cron, plan)
        assert crons.backfill(cron, plan, jobs)
        assert current(crons, cron) == replace(cron, fired=3, missed=7, version=cron.version + 1)
        assert [(job.id, job.due_at, job.trigger) for job in all_jobs(store)] == [
            (job.id, due_at, Trigger.BACKFILL) for job, due_at in zip(jobs, plan.due, strict=True)
        ]
        fires = crons.fires_of(cron.id)
        assert [(fire.due_at, fire.last_due_at, fire.count, fire.outcome) for fire in fires] == [
            (START, START + MINUTE, 2, "missed"),
            (START + 2 * MINUTE, START + 2 * MINUTE, 1, "caught_up"),
            (START + 3 * MINUTE, START + 3 * MINUTE, 1, "caught_up"),
            (START + 4 * MINUTE, START + 4 * MINUTE, 1, "caught_up"),
            (START + 5 * MINUTE, START + 9 * MINUTE, 5, "missed"),
        ]
        assert [fire.job_id for fire in fires] == [None, *(job.id for job in jobs), None]
        assert [fire.reason for fire in fires] == ["too late", *["backfilled"] * 3, "too late"]
        assert fires[1].lateness == clock.now() - fires[1].due_at
        assert fires[1].decided_at == clock.now()

    def test_what_was_made_up_for_is_not_there_a_second_time(self, crons: CronStore, store: JobStore) -> None:
        cron = _behind(crons)
        for _ in range(3):
            plan = _plan(crons, cron, START, START + 9 * MINUTE, limit=4)
            cron = current(crons, cron)
            assert crons.backfill(cron, plan, _jobs(store, cron, plan))
        cron = current(crons, cron)
        assert (cron.fired, cron.missed) == (10, 0)
        assert [job.due_at for job in all_jobs(store)] == [START + number * MINUTE for number in range(10)]
        assert _plan(crons, cron, START, START + 9 * MINUTE).due == ()

    def test_a_backfill_is_refused_where_the_cron_changed_meanwhile(self, crons: CronStore, store: JobStore) -> None:
        cron = _behind(crons)
        plan = _plan(crons, cron, START, START + MINUTE)
        assert crons.change(update_of(cron, {"priority": 1}))
        self._is_refused(crons, store, cron, plan)

    def test_a_second_backfill_of_the_same_plan_is_refused(self, crons: CronStore, store: JobStore) -> None:
        cron = _behind(crons)
        plan = _plan(crons, cron, START, START + MINUTE)
        assert crons.backfill(cron, plan, _jobs(store, cron, plan))
        self._is_refused(crons, store, cron, plan)

    def test_a_backfill_of_a_run_that_is_gone_is_refused(self, crons: CronStore, store: JobStore) -> None:
        cron = _behind(crons)
        plan = replace(_plan(crons, cron, START, START), replaced=(START, START + 99 * MINUTE))
        self._is_refused(crons, store, cron, plan)

    def test_a_backfill_is_undone_with_the_callers_transaction(self, crons: CronStore, store: JobStore) -> None:
        cron = _behind(crons)
        fires = list(crons.fires_of(cron.id))
        plan = _plan(crons, cron, START, START + MINUTE)
        with undone(store):
            assert crons.backfill(cron, plan, _jobs(store, cron, plan))
        assert current(crons, cron) == cron
        assert list(crons.fires_of(cron.id)) == fires
        assert all_jobs(store) == []

    def _is_refused(self, crons: CronStore, store: JobStore, cron: CronSnapshot, plan: BackfillPlan) -> None:
        before = current(crons, cron), list(crons.fires_of(cron.id)), all_jobs(store)
        assert not crons.backfill(cron, plan, _jobs(store, cron, plan))
        assert (current(crons, cron), list(crons.fires_of(cron.id)), all_jobs(store)) == before


def _behind(crons: CronStore) -> CronSnapshot:
    """Return a cron that missed ten occurrences, a minute apart."""
    cron = inserted(crons, new_cron())
    run = missed_run(START, START + 9 * MINUTE, 10)
    assert crons.fire(cron, FiringPlan(missed_runs=(run,), missed=10, next_run_at=START + 10 * MINUTE), [])
    return current(crons, cron)


def _plan(crons: CronStore, cron: CronSnapshot, start: datetime, end: datetime, *, limit: int = 99) -> BackfillPlan:
    return plan_backfill(cron, crons.fires_of(cron.id, since=start, until=end), start, end, limit=limit)


def _jobs(store: JobStore, cron: CronSnapshot, plan: BackfillPlan) -> list[NewJob]:
    return [replace(job_of(store, cron, due_at), trigger=Trigger.BACKFILL) for due_at in plan.due]
