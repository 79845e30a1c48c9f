"""Every verb of CronStore."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from django_helisched.crons.catch_up import FiringPlan
from django_helisched.crons.cron import CatchUp, CronSnapshot, Overlap
from django_helisched.crons.reconcile import ReconcilePlan
from django_helisched.jobs.ids import uuid7
from django_helisched.testing.contract.backfilling import BackfillContract
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
    undone,
)
from django_helisched.testing.contract.fire_pruning import FirePruneContract
from django_helisched.testing.contract.firing import FiringContract
from django_helisched.testing.contract.overlapping import OverlapContract

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django_helisched.stores.base import CronStore, JobStore
    from django_helisched.testing.clock import ManualClock


class CronStoreContract(FiringContract, OverlapContract, BackfillContract, FirePruneContract):
    """Rows of crons, and their firing."""

    def test_the_time_is_the_clocks(self, crons: CronStore, clock: ManualClock) -> None:
        clock.advance(1)
        assert crons.now() == START + SECOND

    def test_an_inserted_cron_is_stored_with_every_field(self, crons: CronStore) -> None:
        given = new_cron(
            source="provider:tenants",
            space="acme",
            tz="Europe/Paris",
            catch_up=CatchUp.FIRE_ALL,
            overlap=Overlap.SKIP,
            jitter=timedelta(milliseconds=1500),
            start=START - MINUTE,
            end=START + MINUTE,
            args=[1, {"a": None}],
            kwargs={"z": 1e22, "a": 2**70},
            enabled=False,
            paused_at=START,
            paused_by="ann",
            pause_reason="é",
            archived_at=START,
            queue="mail",
            priority=-3,
            max_failures=7,
            next_run_at=None,
            last_fire_at=START - SECOND,
            fired=5,
            missed=6,
            declared_by="host:1",
            tzdata_version="2026a",
            last_error="no",
        )
        stored = inserted(crons, given)
        for item in fields(CronSnapshot):
            assert getattr(stored, item.name) == getattr(given, item.name), item.name

    def test_reconcile_hands_the_rows_of_one_source_and_space_to_the_plan(
        self, crons: CronStore, clock: ManualClock
    ) -> None:
        mine = [inserted(crons, new_cron(name=name)) for name in ("b", "a")]
        for other in (new_cron(source="api"), new_cron(space="acme"), new_cron(source="code2")):
            inserted(crons, other)
        clock.advance(1)
        seen: list[tuple[Sequence[CronSnapshot], datetime]] = []

        def plan(rows: Sequence[CronSnapshot], now: datetime) -> ReconcilePlan:
            seen.append((rows, now))
            return ReconcilePlan()

        assert crons.reconcile("code", "", plan) == ReconcilePlan()
        [(rows, now)] = seen
        assert sorted(rows, key=lambda cron: cron.name) == [mine[1], mine[0]]
        assert now == START + SECOND

    def test_reconcile_writes_what_is_planned_and_adds_one_to_the_version(self, crons: CronStore) -> None:
        cron = inserted(crons, new_cron())
        other = inserted(crons, new_cron(name="other"))
        update = update_of(cron, {"priority": 5, "args": [2], "next_run_at": None})
        plan = ReconcilePlan(updates=(update,))
        assert crons.reconcile("code", "", lambda rows, now: plan) is plan
        assert crons.get(cron.id) == replace(cron, priority=5, args=[2], next_run_at=None, version=2)
        assert crons.get(other.id) == other

    def test_a_plan_that_raises_writes_nothing(self, crons: CronStore) -> None:
        cron = inserted(crons, new_cron())

        def plan(rows: Sequence[CronSnapshot], now: datetime) -> ReconcilePlan:
            raise LookupError("discovery failed")

        with pytest.raises(LookupError):
            crons.reconcile("code", "", plan)
        assert list(crons.list()) == [cron]

    def test_reconcile_is_undone_with_the_callers_transaction(self, crons: CronStore, store: JobStore) -> None:
        with undone(store):
            cron = inserted(crons, new_cron())
        assert crons.get(cron.id) is None

    def test_a_parked_cron_is_not_due_and_shows_its_error(self, crons: CronStore) -> None:
        cron = inserted(crons, new_cron())
        assert crons.park(cron, "no such zone: Mars/Olympus")
        assert crons.get(cron.id) == replace(cron, next_run_at=None, last_error="no such zone: Mars/Olympus", version=2)
        assert list(crons.due(limit=9)) == []
        assert not crons.park(cron, "again")

    def test_an_error_of_any_length_parks_a_cron(self, crons: CronStore) -> None:
        cron = inserted(crons, new_cron())
        assert crons.park(cron, "x" * 10_000)
        assert current(crons, cron).last_error.startswith("xxx")

    def test_a_change_is_written_under_compare_and_set(self, crons: CronStore) -> None:
        cron = inserted(crons, new_cron())
        assert crons.change(update_of(cron, {"paused_at": START, "paused_by": "ann", "kwargs": {"k": [1]}}))
        changed = replace(cron, paused_at=START, paused_by="ann", kwargs={"k": [1]}, version=2)
        assert crons.get(cron.id) == changed
        assert not crons.change(update_of(cron, {"paused_at": None}))
        assert crons.get(cron.id) == changed
        assert crons.change(update_of(changed, {"paused_at": None}))
        assert not crons.change(update_of(new_cron(), {"paused_at": None}))

    def test_a_change_and_the_fire_row_of_what_it_drops_are_one(self, crons: CronStore, store: JobStore) -> None:
        cron = inserted(crons, new_cron())
        update = update_of(cron, {"paused_at": START, "missed": 2}, dropped=missed_run(START, START + MINUTE, 2))
        with undone(store):
            assert crons.change(update)
        assert crons.get(cron.id) == cron
        assert list(crons.fires_of(cron.id)) == []
        assert crons.change(update)
        assert not crons.change(update)
        [fire] = crons.fires_of(cron.id)
        assert (fire.due_at, fire.last_due_at, fire.count, fire.outcome) == (START, START + MINUTE, 2, "missed")
        assert (fire.job_id, fire.reason, current(crons, cron).missed) == (None, "too late", 2)

    def test_fires_are_told_in_order_and_a_run_that_reaches_into_the_time_is_whole(
        self, crons: CronStore, store: JobStore, clock: ManualClock
    ) -> None:
        cron, other = inserted(crons, new_cron()), inserted(crons, new_cron(name="other"))
        clock.advance(7)
        job = job_of(store, cron, START + 9 * MINUTE)
        plan = FiringPlan(
            fires=(planned(START + 9 * MINUTE, START + 9 * MINUTE + 7 * SECOND),),
            missed_runs=(missed_run(START, START + 8 * MINUTE, 9),),
            missed=9,
            next_run_at=START + 10 * MINUTE,
        )
        assert crons.fire(cron, plan, [job])
        assert crons.fire(other, plan_of(START), [job_of(store, other, START)])
        run, fired = crons.fires_of(cron.id)
        assert (run.due_at, run.last_due_at, run.count, run.outcome) == (START, START + 8 * MINUTE, 9, "missed")
        assert (run.job_id, run.lateness, run.reason, run.decided_at) == (None, 7 * SECOND, "too late", clock.now())
        assert (fired.due_at, fired.last_due_at, fired.count) == (START + 9 * MINUTE, START + 9 * MINUTE, 1)
        assert (fired.outcome, fired.job_id, fired.lateness) == ("enqueued", job.id, 7 * SECOND)
        assert list(crons.fires_of(cron.id, since=START + 8 * MINUTE)) == [run, fired]
        assert list(crons.fires_of(cron.id, since=START + 8 * MINUTE + TICK)) == [fired]
        assert list(crons.fires_of(cron.id, since=START + 9 * MINUTE + TICK)) == []
        assert list(crons.fires_of(cron.id, until=START + 8 * MINUTE)) == [run]
        assert list(crons.fires_of(cron.id, since=START + MINUTE, until=START + 2 * MINUTE)) == [run]
        assert list(crons.fires_of(cron.id, until=START - TICK)) == []

    def test_crons_are_listed_by_source_space_and_name_archived_ones_included(self, crons: CronStore) -> None:
        keys = [("code", "b", "x"), ("api", "", "z"), ("code", "a", "y"), ("code", "a", "B"), ("api", "", "a")]
        for source, space, name in keys:
            inserted(crons, new_cron(source=source, space=space, name=name, archived_at=START))
        assert [(cron.source, cron.space, cron.name) for cron in crons.list()] == sorted(keys)
        assert [cron.name for cron in crons.list(source="code")] == ["B", "y", "x"]
        assert [cron.name for cron in crons.list(space="")] == ["a", "z"]
        assert [cron.name for cron in crons.list(source="code", space="b")] == ["x"]

    def test_a_cron_is_found_by_name_whatever_its_source(self, crons: CronStore) -> None:
        for source, space, name in (("code", "", "digest"), ("api", "", "digest"), ("code", "acme", "digest")):
            inserted(crons, new_cron(source=source, space=space, name=name))
        inserted(crons, new_cron(name="Digest"))
        assert [cron.source for cron in crons.find("digest")] == ["api", "code"]
        assert [cron.space for cron in crons.find("digest", space="acme")] == ["acme"]
        assert list(crons.find("none")) == []

    def test_an_unknown_cron_is_not_there(self, crons: CronStore) -> None:
        assert crons.get(uuid7()) is None
