"""CronStore.prune_fires: what became of occurrences is forgotten, but never so that one fires again."""

# ruff: noqa: S101

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django_helisched.crons.backfill import plan_backfill
from django_helisched.crons.catch_up import FiringPlan
from django_helisched.jobs.ids import uuid7
from django_helisched.testing.contract.cron_factories import (
    MINUTE,
    current,
    inserted,
    job_of,
    missed_run,
    new_cron,
    plan_of,
    planned,
    update_of,
)
from django_helisched.testing.contract.factories import START, TICK, all_jobs

if TYPE_CHECKING:
    from datetime import datetime

    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.stores.base import CronStore, JobStore
    from django_helisched.testing.clock import ManualClock

DAY = timedelta(days=1)


class FirePruneContract:
    """Which Fire rows are deleted."""

    def test_rows_go_by_when_they_were_decided_and_the_counts_stay(
        self, crons: CronStore, store: JobStore, clock: ManualClock
    ) -> None:
        cron = _fired(crons, store, inserted(crons, new_cron()), START, START + MINUTE)
        clock.advance(DAY)
        cron = _fired(crons, store, cron, START + 2 * MINUTE)
        clock.advance(TICK)
        assert _pruned(crons, DAY, pretend=True) == 2
        assert _pruned(crons, DAY, limit=1) == 2
        assert [fire.due_at for fire in crons.fires_of(cron.id)] == [START + 2 * MINUTE]
        assert (current(crons, cron), len(all_jobs(store))) == (cron, 3)
        assert _pruned(crons, DAY) == 0

    def test_a_row_at_or_past_the_next_occurrence_stays_however_old(
        self, crons: CronStore, store: JobStore, clock: ManualClock
    ) -> None:
        cron = _fired(crons, store, inserted(crons, new_cron()), START, START + MINUTE, START + 2 * MINUTE)
        # The clock went back, and the schedule was set anew.
        crons.change(update_of(cron, {"next_run_at": START + MINUTE}))
        clock.advance(DAY)
        assert _pruned(crons, TICK) == 1
        kept = [fire.due_at for fire in crons.fires_of(cron.id)]
        assert kept == [START + MINUTE, START + 2 * MINUTE]
        cron = current(crons, cron)
        again = [planned(due_at, clock.now()) for due_at in kept]
        plan = FiringPlan(fires=tuple(again), next_run_at=START + 3 * MINUTE)
        assert crons.fire(cron, plan, [job_of(store, cron, due_at) for due_at in kept])
        assert len(all_jobs(store)) == 3
        assert _pruned(crons, TICK) == 2

    def test_a_run_that_reaches_to_the_next_occurrence_stays_whole(self, crons: CronStore, clock: ManualClock) -> None:
        cron = _missed(crons, START, START + 4 * MINUTE, 5)
        crons.change(update_of(cron, {"next_run_at": START + 4 * MINUTE}))
        clock.advance(DAY)
        assert _pruned(crons, TICK) == 0
        crons.change(update_of(current(crons, cron), {"next_run_at": START + 5 * MINUTE}))
        assert _pruned(crons, TICK) == 1

    def test_a_cron_that_has_no_further_occurrence_keeps_nothing(
        self, crons: CronStore, store: JobStore, clock: ManualClock
    ) -> None:
        cron = _fired(crons, store, inserted(crons, new_cron()), START)
        crons.change(update_of(cron, {"next_run_at": None}))
        clock.advance(DAY)
        assert _pruned(crons, TICK) == 1

    def test_what_was_missed_can_be_made_up_for_as_long_as_its_row_is_kept(
        self, crons: CronStore, store: JobStore, clock: ManualClock
    ) -> None:
        cron = _missed(crons, START - 90 * DAY, START - 90 * DAY + 2 * MINUTE, 3)
        clock.advance(DAY)
        assert _pruned(crons, DAY) == 0
        fires = crons.fires_of(cron.id)
        plan = plan_backfill(cron, fires, START - 90 * DAY, START - 90 * DAY)
        clock.advance(TICK)
        assert _pruned(crons, DAY) == 1
        jobs = [job_of(store, cron, due_at) for due_at in plan.due]
        assert jobs
        assert not crons.backfill(cron, plan, jobs)
        assert not all_jobs(store)
        assert current(crons, cron) == cron

    def test_a_walk_over_nothing_has_come_to_its_end(self, crons: CronStore) -> None:
        assert _pruned(crons, TICK) == 0


def _fired(crons: CronStore, store: JobStore, cron: CronSnapshot, *due: datetime) -> CronSnapshot:
    for due_at in due:
        assert crons.fire(cron, plan_of(due_at), [job_of(store, cron, due_at, id=uuid7())])
        cron = current(crons, cron)
    return cron


def _missed(crons: CronStore, first: datetime, last: datetime, count: int) -> CronSnapshot:
    cron = inserted(crons, new_cron(next_run_at=first))
    run = missed_run(first, last, count)
    assert crons.fire(cron, FiringPlan(missed=count, missed_runs=(run,), next_run_at=last + MINUTE), [])
    return current(crons, cron)


def _pruned(crons: CronStore, age: timedelta, *, limit: int = 100, pretend: bool = False) -> int:
    """Walk to the end and return how many rows went, or would go."""
    gone, after, is_over = 0, None, False
    while not is_over:
        step = crons.prune_fires(crons.now() - age, after=after, limit=limit, pretend=pretend)
        assert not step.refused
        gone, after = gone + step.count, step.after
        is_over = after is None
    return gone
