"""One job of a cron at a time: who is held, and who is let out."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_helisched.crons.catch_up import FiringPlan, PlannedFire
from django_helisched.crons.changes import CronUpdate
from django_helisched.crons.cron import CronSnapshot, FireOutcome, Overlap
from django_helisched.crons.reconcile import ReconcilePlan
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Hold, State, Trigger
from django_helisched.testing.contract.factories import (
    SECOND,
    START,
    canceled,
    claimed,
    enqueued,
    failure,
    new_job,
    read,
    retry,
    settled,
    state_of,
    success,
    undone,
)

if TYPE_CHECKING:
    from django_helisched.jobs.job import JobSnapshot, NewJob
    from django_helisched.stores.base import CronStore, JobStore
    from django_helisched.testing.clock import ManualClock


class OverlapContract:
    """JobStore.admit, and what firing cancels."""

    def test_a_job_with_an_overlap_key_waits_until_it_is_admitted(
        self, store: JobStore, crons: CronStore, clock: ManualClock
    ) -> None:
        job = _waiting(store, _cron(crons))
        assert (job.state, job.hold, job.held_at) == (State.PENDING, Hold.OVERLAP, START)
        assert store.next_due_at() is None
        assert _claims(store) == []
        clock.advance(1)
        assert store.admit() == 1
        assert read(store, job.id) == replace(job, hold=Hold.NONE, held_at=None)
        assert claimed(store).id == job.id
        assert store.admit() == 0

    def test_of_one_key_the_oldest_is_let_out_and_the_others_wait_for_its_end(
        self, store: JobStore, crons: CronStore
    ) -> None:
        cron = _cron(crons)
        jobs = [_waiting(store, cron) for _ in range(3)]
        for job in jobs:
            assert store.admit() == 1
            assert store.admit() == 0
            claim = claimed(store)
            assert claim.id == job.id
            assert store.admit() == 0
            settled(store, claim, success())
        assert store.admit() == 0

    def test_crons_do_not_wait_for_one_another(self, store: JobStore, crons: CronStore) -> None:
        first, second = _cron(crons, name="a"), _cron(crons, name="b")
        _waiting(store, first)
        _waiting(store, first)
        _waiting(store, second)
        assert store.admit() == 2
        assert {claim.cron_id for claim in _claims(store)} == {first.id, second.id}

    def test_a_job_stays_out_through_its_retries_and_its_release(
        self, store: JobStore, crons: CronStore, clock: ManualClock
    ) -> None:
        cron = _cron(crons)
        first, second = _waiting(store, cron), _waiting(store, cron)
        store.admit()
        settled(store, claimed(store), retry())
        assert store.admit() == 0
        clock.advance(1)
        claim = claimed(store)
        assert claim.id == first.id
        store.release([claim])
        assert store.admit() == 0
        store.hold_unknown([claimed(store)])
        assert store.admit() == 0
        store.unhold_known([first.fn_path])
        settled(store, claimed(store), failure())
        assert store.admit() == 1
        assert claimed(store).id == second.id

    def test_a_canceled_job_makes_way(self, store: JobStore, crons: CronStore) -> None:
        cron = _cron(crons)
        first, second, third = (_waiting(store, cron) for _ in range(3))
        store.admit()
        store.cancel(second.id)
        store.cancel(first.id)
        assert read(store, second.id).hold == Hold.NONE
        assert store.admit() == 1
        assert claimed(store).id == third.id

    def test_a_requeued_job_waits_like_any_other(self, store: JobStore, crons: CronStore, clock: ManualClock) -> None:
        cron = _cron(crons)
        first, second = _waiting(store, cron), _waiting(store, cron)
        store.admit()
        settled(store, claimed(store), failure())
        store.admit()
        running = claimed(store)
        assert running.id == second.id
        clock.advance(1)
        assert store.requeue(first.id)
        assert (read(store, first.id).hold, read(store, first.id).held_at) == (Hold.OVERLAP, START + SECOND)
        assert store.admit() == 0
        settled(store, running, success())
        assert store.admit() == 1
        assert claimed(store).id == first.id

    def test_a_job_from_before_the_cron_had_a_rule_counts_as_its_job(self, store: JobStore, crons: CronStore) -> None:
        cron = _cron(crons)
        enqueued(store, cron_id=cron.id)
        old = claimed(store)
        _waiting(store, cron)
        assert store.admit() == 0
        settled(store, old, success())
        assert store.admit() == 1

    def test_all_are_let_out_once_the_cron_allows_overlap(self, store: JobStore, crons: CronStore) -> None:
        cron = _cron(crons)
        jobs = [_waiting(store, cron) for _ in range(3)]
        store.admit()
        claimed(store)
        update = CronUpdate(
            id=cron.id, version=cron.version, name=cron.name, fields={"overlap": Overlap.ALLOW}, reason="changed"
        )
        assert crons.change(update)
        assert store.admit() == 2
        assert [claim.id for claim in _claims(store)] == [job.id for job in jobs[1:]]

    def test_jobs_of_a_cron_that_is_gone_do_not_wait_for_ever(self, store: JobStore) -> None:
        gone = uuid7()
        for _ in range(2):
            enqueued(store, cron_id=gone, overlap_key=f"cron:{gone}")
        enqueued(store, overlap_key="of no cron")
        assert store.admit() == 3

    def test_a_job_born_canceled_waits_for_nobody(self, store: JobStore) -> None:
        parent = enqueued(store)
        store.cancel(parent.id)
        job = enqueued(store, parent_id=parent.id, overlap_key="k")
        assert (job.state, job.hold, job.held_at) == (State.CANCELED, Hold.NONE, None)
        assert store.admit() == 0

    def test_an_admission_is_undone_with_the_callers_transaction(self, store: JobStore, crons: CronStore) -> None:
        job = _waiting(store, _cron(crons))
        with undone(store):
            assert store.admit() == 1
        assert read(store, job.id) == job

    def test_firing_cancels_what_is_live_where_the_plan_says_so(self, store: JobStore, crons: CronStore) -> None:
        cron, other = _cron(crons), _cron(crons, name="other")
        running_job, waiting, done = (_waiting(store, cron) for _ in range(3))
        bystander = _waiting(store, other)
        store.cancel(done.id)
        store.admit()
        claim = next(claim for claim in _claims(store) if claim.id == running_job.id)
        child = enqueued(store, parent_id=running_job.id)
        new = _new(store, cron)
        assert crons.fire(cron, _plan(cancels_live_jobs=True), [new])
        assert state_of(store, waiting.id) == State.CANCELED
        assert state_of(store, child.id) == State.CANCELED
        assert read(store, running_job.id).cancel_requested_at == START
        assert state_of(store, bystander.id) == State.IN_PROGRESS
        assert (state_of(store, new.id), store.admit()) == (State.PENDING, 0)
        settled(store, claim, canceled())
        assert store.admit() == 1
        assert claimed(store).id == new.id

    def test_a_firing_that_lost_the_race_cancels_nothing(self, store: JobStore, crons: CronStore) -> None:
        cron = _cron(crons)
        job = _waiting(store, cron)
        assert crons.park(cron, "no")
        assert not crons.fire(cron, _plan(cancels_live_jobs=True), [_new(store, cron)])
        assert read(store, job.id) == job

    def test_a_firing_that_may_overlap_cancels_nothing(self, store: JobStore, crons: CronStore) -> None:
        cron = _cron(crons)
        job = _waiting(store, cron)
        assert crons.fire(cron, _plan(), [_new(store, cron)])
        assert read(store, job.id) == job


def _cron(crons: CronStore, **given: Any) -> CronSnapshot:
    cron = CronSnapshot(
        **{
            "id": uuid7(),
            "name": "digest",
            "spec": '{"kind":"interval","ms":60000}',
            "overlap": Overlap.CANCEL_PREVIOUS,
            "anchor": START,
            "fn_path": "shop.jobs.work",
            "next_run_at": START,
            "counted_since": START,
            "declared_at": START,
            **given,
        }
    )
    crons.reconcile(cron.source, cron.space, lambda rows, now: ReconcilePlan(inserts=(cron,)))
    found = crons.get(cron.id)
    assert found is not None
    return found


def _plan(**given: Any) -> FiringPlan:
    fire = PlannedFire(due_at=START, outcome=FireOutcome.ENQUEUED, lateness=0 * SECOND)
    return FiringPlan(fires=(fire,), next_run_at=START + 60 * SECOND, **given)


def _of(cron: CronSnapshot) -> dict[str, Any]:
    return {"cron_id": cron.id, "overlap_key": f"cron:{cron.id}", "trigger": Trigger.CRON}


def _new(store: JobStore, cron: CronSnapshot) -> NewJob:
    return new_job(store, **_of(cron))


def _waiting(store: JobStore, cron: CronSnapshot) -> JobSnapshot:
    return enqueued(store, **_of(cron))


def _claims(store: JobStore) -> list[Any]:
    return store.claim(worker_id="worker-1", limit=64, lease=30 * SECOND)
