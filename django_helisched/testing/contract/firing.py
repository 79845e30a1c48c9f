"""due, fire and live_jobs: an occurrence becomes a job at most once."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from django_helisched.crons.catch_up import FiringPlan
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State, Trigger
from django_helisched.stores.base import PlannedFiring
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
from django_helisched.testing.contract.factories import (
    SECOND,
    START,
    TICK,
    all_jobs,
    claimed,
    enqueued,
    failure,
    only,
    retry,
    running,
    settled,
    success,
    undone,
)

if TYPE_CHECKING:
    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.stores.base import CronStore, JobStore
    from django_helisched.testing.clock import ManualClock


class FiringContract:
    """The firing of crons; overlap is in OverlapContract."""

    def test_a_cron_is_due_at_its_instant_and_not_before(self, crons: CronStore, clock: ManualClock) -> None:
        cron = inserted(crons, new_cron(next_run_at=START + SECOND))
        clock.advance(SECOND - TICK)
        assert list(crons.due(limit=9)) == []
        clock.advance(TICK)
        assert list(crons.due(limit=9)) == [cron]

    def test_due_crons_come_soonest_first_and_no_more_than_asked(self, crons: CronStore, clock: ManualClock) -> None:
        made = [inserted(crons, new_cron(name=str(after), next_run_at=START + after * SECOND)) for after in (3, 1, 2)]
        clock.advance(60)
        assert list(crons.due(limit=2)) == [made[1], made[2]]

    def test_a_cron_that_is_not_active_is_never_due(self, crons: CronStore) -> None:
        inserted(crons, new_cron(name="disabled", enabled=False))
        inserted(crons, new_cron(name="paused", paused_at=START))
        inserted(crons, new_cron(name="archived", archived_at=START))
        inserted(crons, new_cron(name="over", next_run_at=None))
        assert list(crons.due(limit=9)) == []
        assert crons.next_due_at() is None

    def test_the_next_due_time_is_the_earliest_of_an_active_cron(self, crons: CronStore) -> None:
        inserted(crons, new_cron(name="paused", paused_at=START, next_run_at=START + SECOND))
        inserted(crons, new_cron(name="late", next_run_at=START + 3 * SECOND))
        inserted(crons, new_cron(name="soon", next_run_at=START + 2 * SECOND))
        assert crons.next_due_at() == START + 2 * SECOND

    def test_a_firing_moves_the_cron_and_stores_its_jobs(
        self, crons: CronStore, store: JobStore, clock: ManualClock
    ) -> None:
        cron = inserted(crons, new_cron(fired=10, missed=20, last_error="old"))
        clock.advance(3)
        due = [START - MINUTE, START]
        plan = FiringPlan(
            fires=tuple(planned(due_at, clock.now()) for due_at in due),
            missed_runs=(missed_run(START - 5 * MINUTE, START - 2 * MINUTE, 4),),
            missed=4,
            next_run_at=START + MINUTE,
        )
        jobs = [job_of(store, cron, due_at, args=[number]) for number, due_at in enumerate(due)]
        assert crons.fire(cron, plan, jobs)
        assert crons.get(cron.id) == replace(
            cron, next_run_at=START + MINUTE, last_fire_at=START, fired=12, missed=24, version=2, last_error=""
        )
        stored = all_jobs(store)
        assert [(job.id, job.cron_id, job.due_at, job.state) for job in stored] == [
            (job.id, cron.id, job.due_at, State.PENDING) for job in jobs
        ]
        assert [store.args_of(job.id)["args"] for job in stored] == [[0], [1]]

    def test_a_firing_without_jobs_counts_what_was_missed(self, crons: CronStore, store: JobStore) -> None:
        cron = inserted(crons, new_cron(last_fire_at=START - 9 * MINUTE))
        plan = FiringPlan(
            missed_runs=(missed_run(START, START, 1),), missed=1, first_missed_at=START, next_run_at=START + MINUTE
        )
        assert crons.fire(cron, plan, [])
        assert crons.get(cron.id) == replace(cron, next_run_at=START + MINUTE, missed=1, version=2)
        assert all_jobs(store) == []

    def test_the_last_occurrence_leaves_a_cron_without_a_due_time(self, crons: CronStore, store: JobStore) -> None:
        cron = inserted(crons, new_cron())
        plan = replace(plan_of(START), next_run_at=None)
        assert crons.fire(cron, plan, [job_of(store, cron, START)])
        assert list(crons.due(limit=9)) == []

    def test_crons_fired_together_have_an_answer_each(
        self, crons: CronStore, store: JobStore, clock: ManualClock
    ) -> None:
        first, lost, last = (inserted(crons, new_cron(name=name)) for name in "cab")
        assert crons.park(lost, "no")
        clock.advance(1)
        firings = [
            PlannedFiring(cron=cron, plan=plan_of(START), jobs=[job_of(store, cron, START, args=[cron.name])])
            for cron in (first, lost, last)
        ]
        assert list(crons.fire_together(firings)) == [True, False, True]
        assert {job.cron_id for job in all_jobs(store)} == {first.id, last.id}
        for firing in (firings[0], firings[2]):
            moved = current(crons, firing.cron)
            assert (moved.fired, moved.last_fire_at, moved.next_run_at) == (1, START, START + MINUTE)
            [fire] = crons.fires_of(firing.cron.id)
            assert (fire.job_id, fire.due_at, fire.outcome) == (firing.jobs[0].id, START, "enqueued")
            assert store.args_of(firing.jobs[0].id)["args"] == [firing.cron.name]
        assert list(crons.fires_of(lost.id)) == []
        assert list(crons.fire_together(firings)) == [False, False, False]

    def test_where_one_cannot_be_fired_none_is(self, crons: CronStore, store: JobStore) -> None:
        good, bad = (inserted(crons, new_cron(name=name)) for name in "ab")
        firings = [
            PlannedFiring(cron=good, plan=plan_of(START), jobs=[job_of(store, good, START)]),
            PlannedFiring(cron=bad, plan=plan_of(START), jobs=[]),
        ]
        with pytest.raises(ValueError, match="zip"):
            crons.fire_together(firings)
        assert [current(crons, cron) for cron in (good, bad)] == [good, bad]
        assert all_jobs(store) == []

    def test_nothing_to_fire_together_is_nothing(self, crons: CronStore) -> None:
        assert list(crons.fire_together([])) == []

    def test_a_second_firing_of_the_same_snapshot_writes_nothing(self, crons: CronStore, store: JobStore) -> None:
        cron = inserted(crons, new_cron())
        assert crons.fire(cron, plan_of(START), [job_of(store, cron, START)])
        _refuses(crons, store, cron)

    def test_a_firing_is_refused_where_the_cron_changed_though_its_due_time_is_the_same(
        self, crons: CronStore, store: JobStore
    ) -> None:
        cron = inserted(crons, new_cron())
        assert crons.change(update_of(cron, {"priority": 1}))
        _refuses(crons, store, cron)

    def test_a_firing_is_refused_where_the_cron_is_not_active(self, crons: CronStore, store: JobStore) -> None:
        for name, fields_ in (
            ("paused", {"paused_at": START}),
            ("disabled", {"enabled": False}),
            ("archived", {"archived_at": START}),
        ):
            cron = inserted(crons, new_cron(name=name))
            crons.change(update_of(cron, fields_))
            _refuses(crons, store, current(crons, cron))

    def test_a_firing_of_an_unknown_cron_writes_nothing(self, crons: CronStore, store: JobStore) -> None:
        _refuses(crons, store, new_cron())

    def test_a_firing_is_undone_with_the_callers_transaction(self, crons: CronStore, store: JobStore) -> None:
        cron = inserted(crons, new_cron())
        with undone(store):
            assert crons.fire(cron, plan_of(START), [job_of(store, cron, START)])
        assert crons.get(cron.id) == cron
        assert all_jobs(store) == []

    def test_the_next_firing_starts_from_the_new_row(self, crons: CronStore, store: JobStore) -> None:
        cron = inserted(crons, new_cron())
        crons.fire(cron, plan_of(START), [job_of(store, cron, START)])
        moved = current(crons, cron)
        assert crons.fire(moved, plan_of(START + MINUTE), [job_of(store, cron, START + MINUTE)])
        assert current(crons, cron).fired == 2

    def test_an_occurrence_that_was_fired_becomes_no_second_job_when_the_clock_goes_back(
        self, crons: CronStore, store: JobStore
    ) -> None:
        cron = inserted(crons, new_cron())
        crons.fire(cron, plan_of(START), [job_of(store, cron, START)])
        crons.change(update_of(current(crons, cron), {"next_run_at": START}))
        again = current(crons, cron)
        fires = (planned(START, START), planned(START + SECOND, START + SECOND))
        plan = replace(plan_of(START), fires=fires, missed_runs=(missed_run(START, START, 1),), missed=1)
        jobs = [job_of(store, cron, fire.due_at) for fire in fires]
        assert crons.fire(again, plan, jobs)
        assert [job.due_at for job in all_jobs(store)] == [START, START + SECOND]
        row = current(crons, cron)
        assert (row.fired, row.missed, row.last_fire_at) == (2, 0, START + SECOND)

    def test_live_jobs_are_the_pending_and_running_ones_of_the_cron(self, crons: CronStore, store: JobStore) -> None:
        cron = uuid7()
        for outcome in (success(), failure()):
            settled(store, running(store, cron_id=cron), outcome)
        store.cancel(enqueued(store, cron_id=cron).id)
        enqueued(store, cron_id=uuid7())
        enqueued(store)
        assert crons.live_jobs(cron) == 0
        settled(store, running(store, cron_id=cron), retry())
        running(store, cron_id=cron)
        enqueued(store, cron_id=cron, trigger=Trigger.MANUAL)
        assert crons.live_jobs(cron) == 3

    def test_a_requeued_job_of_the_cron_is_live(self, crons: CronStore, store: JobStore) -> None:
        cron = uuid7()
        claim = running(store, cron_id=cron)
        settled(store, claim, failure())
        store.requeue(claim.id)
        assert crons.live_jobs(cron) == 1
        assert claimed(store, queues=only(claim.queue)).cron_id == cron


def _refuses(crons: CronStore, store: JobStore, cron: CronSnapshot) -> None:
    row, jobs = crons.get(cron.id), all_jobs(store)
    assert not crons.fire(cron, plan_of(START), [job_of(store, cron, START)])
    assert crons.get(cron.id) == row
    assert all_jobs(store) == jobs
