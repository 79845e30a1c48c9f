"""A second machine, for crons: deploys, schedulers that look and fire late, operators, and time.

HELISCHED_SOAK is the number of examples of a long run, as in test_model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from django_helisched.crons.catch_up import jitter_of, overlap_key_of, plan_firing
from django_helisched.crons.cron import CatchUp, CronDeclaration, CronSnapshot, Overlap
from django_helisched.crons.operations import edit, pause, resume
from django_helisched.crons.reconcile import plan_reconcile
from django_helisched.jobs.job import NewJob, State, Trigger
from django_helisched.jobs.outcome import AttemptOutcome, Outcome
from django_helisched.models import Fire
from django_helisched.stores.base import JobFilter, Settlement
from django_helisched.stores.clock import cut
from django_helisched.stores.memory import MemoryCronStore, MemoryJobStore
from django_helisched.stores.orm import OrmCronStore, OrmJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START
from tests.contract.model import SETTINGS, TwinIds, Twins

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django_helisched.crons.changes import CronUpdate
    from django_helisched.jobs.job import JobSnapshot

MINUTE = timedelta(minutes=1)
STEPS = [timedelta(milliseconds=1), timedelta(seconds=29), MINUTE, timedelta(hours=1), timedelta(days=3)]
SPECS = ['{"kind":"interval","ms":60000}', '{"expr":"*/5 * * * *","kind":"cron"}', '{"expr":"0 9 * * *","kind":"cron"}']
TZDATA = "2026a"

variants = st.fixed_dictionaries(
    {"spec": st.sampled_from(SPECS)},
    optional={
        "tz": st.sampled_from(["UTC", "Europe/Paris"]),
        "catch_up": st.sampled_from(CatchUp),
        "overlap": st.sampled_from(Overlap),
        "jitter": st.just(timedelta(seconds=1.5)),
        "args": st.just([1, {"a": None}]),
        "enabled": st.booleans(),
        "priority": st.just(3),
    },
)
deploys = st.dictionaries(st.sampled_from(["a", "b", "c"]), variants, max_size=3)
edits = st.sampled_from([{"spec": SPECS[1]}, {"catch_up": CatchUp.FIRE_ALL}, {"enabled": False}, {"enabled": True}])


class CronMachine(RuleBasedStateMachine):
    """Rows of crons in two stores, and what schedulers remember of them."""

    seen: Bundle[CronSnapshot] = Bundle("seen")  # as some scheduler or operator read it, maybe long ago

    def __init__(self) -> None:
        super().__init__()
        self._transaction = transaction.atomic()
        self._transaction.__enter__()
        self.clock = ManualClock(START)
        self.new_id = TwinIds()
        memory = MemoryJobStore(self.clock, self.new_id.trusted)
        self.jobs = Twins(memory, OrmJobStore("default", self.clock, self.new_id.other))
        self.crons = Twins(MemoryCronStore(self.clock, memory), OrmCronStore("default", self.clock))
        self.before: dict[UUID, CronSnapshot] = {}
        self.forgotten: Counter[tuple[UUID, bool]] = Counter()  # of each cron, fired and missed

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self._transaction.__exit__(None, None, None)

    @invariant()
    def both_stores_hold_the_same(self) -> None:
        rows = {cron.id: cron for cron in self.crons.both("list")}
        jobs = self.jobs.both("list", JobFilter(), limit=10_000)
        self.crons.both("next_due_at")
        fires = self._fires()
        for cron_id, cron in rows.items():
            if cron != self.before.get(cron_id):
                self._has_changed(self.before.get(cron_id), cron)
                self._adds_up(cron, fires, jobs)
        self.before = rows

    def _fires(self) -> list[dict[str, Any]]:
        memory: MemoryCronStore = self.crons.trusted
        trusted = [asdict(fire) for cron in memory.list() for fire in memory.fires_of(cron.id)]
        names = [*trusted[0]] if trusted else ["cron_id"]
        assert list(Fire.objects.order_by("cron_id", "due_at").values(*names)) == sorted(
            trusted, key=lambda fire: (fire["cron_id"], fire["due_at"])
        )
        return trusted

    def _has_changed(self, before: CronSnapshot | None, cron: CronSnapshot) -> None:
        if before is None:
            assert cron.version == 1
            return
        assert cron.version > before.version
        assert cron.fired >= before.fired  # I-28
        assert cron.missed >= before.missed
        if before.last_fire_at is not None:
            assert cron.last_fire_at is not None
            assert cron.last_fire_at >= before.last_fire_at

    def _adds_up(self, cron: CronSnapshot, fires: list[dict[str, Any]], jobs: list[JobSnapshot]) -> None:
        own = [fire for fire in fires if fire["cron_id"] == cron.id]
        fired = sum(fire["count"] for fire in own if fire["job_id"] is not None)
        missed = sum(fire["count"] for fire in own if fire["job_id"] is None)
        assert cron.fired == fired + self.forgotten[cron.id, True]  # I-27
        assert cron.missed == missed + self.forgotten[cron.id, False]
        made = Counter(job.due_at for job in jobs if job.cron_id == cron.id)
        assert set(made.values()) <= {1}  # I-26
        assert made.total() == cron.fired

    @rule(declared=deploys, space=st.sampled_from(["", "acme"]), process=st.sampled_from(["p1", "p2"]))
    def deploy(self, declared: dict[str, dict[str, Any]], space: str, process: str) -> None:
        declarations = [
            CronDeclaration(space=space, name=name, fn_path="shop.jobs.work", **given)
            for name, given in declared.items()
        ]
        ids = [self.new_id() for _ in declarations]
        others = [cron for cron in self.before.values() if cron.space != space]

        def reconcile() -> Any:
            def plan(rows: Any, now: Any) -> Any:
                unused = iter(ids)
                return plan_reconcile(
                    rows,
                    declarations,
                    source="code",
                    space=space,
                    now=now,
                    declared_by=process,
                    booted_at=now,
                    new_id=lambda: next(unused),
                    tzdata_version=TZDATA,
                )

            return self.crons.both("reconcile", "code", space, plan)

        reconcile()
        rows = self.crons.both("list")
        assert reconcile().is_empty  # I-32
        assert self.crons.both("list") == rows
        assert [cron for cron in rows if cron.space != space] == others  # I-33

    @rule(target=seen, limit=st.sampled_from([1, 9]))
    def look(self, limit: int) -> Any:
        return multiple(*self.crons.both("due", limit=limit))

    @rule(target=seen)
    def read(self) -> Any:
        return multiple(*self.crons.both("list"))

    @rule(cap=st.sampled_from([1, 5]))
    def fire_what_is_due(self, cap: int) -> None:
        for cron in self.crons.both("due", limit=9):
            assert self._fire(cron, cap)

    @rule(cron=consumes(seen), cap=st.sampled_from([1, 5]))
    def fire_late(self, cron: CronSnapshot, cap: int) -> None:
        row = self.before[cron.id]
        fired = self._fire(cron, cap)
        assert fired == (row.is_active and row.version == cron.version)

    @rule(cron=seen, by=st.sampled_from(["ann", "bob"]))
    def pause(self, cron: CronSnapshot, by: str) -> None:
        self._change(pause(cron, self.clock.now(), by=by))

    @rule(cron=seen)
    def resume(self, cron: CronSnapshot) -> None:
        self._change(resume(cron, self.clock.now()))

    @rule(cron=seen, changes=edits)
    def edit(self, cron: CronSnapshot, changes: dict[str, Any]) -> None:
        self._change(edit(cron, self.clock.now(), changes))

    @rule(cron=seen)
    def park(self, cron: CronSnapshot) -> None:
        self.crons.both("park", cron, "é" * 600)

    @rule(age=st.sampled_from(STEPS), limit=st.sampled_from([1, 9]))
    def prune_fires(self, age: timedelta, limit: int) -> None:
        before, fires = self.clock.now() - age, self._fires()
        would = [self._walk(store, before, limit, pretend=True) for store in (self.crons.trusted, self.crons.other)]
        gone = [self._walk(store, before, limit, pretend=False) for store in (self.crons.trusted, self.crons.other)]
        left = self._fires()
        lost = [fire for fire in fires if fire not in left]
        assert would == gone == [len(lost)] * 2
        for fire in lost:
            next_run_at = self.before[fire["cron_id"]].next_run_at
            assert fire["decided_at"] < before
            assert next_run_at is None or fire["last_due_at"] < next_run_at
            self.forgotten[fire["cron_id"], fire["job_id"] is not None] += fire["count"]

    def _walk(self, store: Any, before: datetime, limit: int, *, pretend: bool) -> int:
        """Walk to the end, each store in an order of its own, and return how many rows went."""
        gone, after, is_over = 0, None, False
        while not is_over:
            step = store.prune_fires(before, after=after, limit=limit, pretend=pretend)
            gone, after, is_over = gone + step.count, step.after, step.after is None
        return gone

    @rule()
    def admit(self) -> None:
        self.jobs.both("admit")

    @rule(limit=st.sampled_from([1, 9]))
    def work(self, limit: int) -> None:
        done = Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS)
        self.jobs.both("admit")
        claims = self.jobs.both("claim", worker_id="w", limit=limit, lease=MINUTE)
        self.jobs.both("settle", [Settlement(claim=claim, outcome=done, started_at=None) for claim in claims])

    @rule(cron=consumes(seen))
    def roll_back(self, cron: CronSnapshot) -> None:
        with self.jobs.undone():
            self._fire(cron, 5)
            self.crons.both("park", cron, "undone")

    @rule(step=st.sampled_from(STEPS))
    def advance(self, step: timedelta) -> None:
        self.clock.advance(step)

    def _fire(self, cron: CronSnapshot, cap: int) -> bool:
        now = self.clock.now()
        live = self.crons.both("live_jobs", cron.id)
        plan = plan_firing(cron, now, catchup_cap=cap, misfire_grace=MINUTE, live_jobs=live)
        jobs = [self._job(cron, fire.due_at) for fire in plan.fires]
        fired: bool = self.crons.both("fire", cron, plan, jobs)
        if fired and cron.next_run_at is not None and cron.next_run_at <= now:
            moved = self.crons.both("get", cron.id).next_run_at
            assert moved is None or moved > now  # I-29
        return fired

    def _job(self, cron: CronSnapshot, due_at: Any) -> NewJob:
        now = self.clock.now()
        return NewJob(
            id=self.new_id(),
            fn_path=cron.fn_path,
            created_at=now,
            due_at=due_at,
            next_run_at=cut(now + jitter_of(cron.id, cron.jitter)),
            args=cron.args,
            trigger=Trigger.CRON,
            cron_id=cron.id,
            overlap_key=overlap_key_of(cron),
        )

    def _change(self, update: CronUpdate | None) -> None:
        if update is not None:
            self.crons.both("change", update)


@pytest.mark.django_db(transaction=True)
def test_memory_and_database_agree_about_crons_after_every_step():
    run_state_machine_as_test(CronMachine, settings=SETTINGS)
