"""prune: old rows go, a few at a time, and only those that nobody needs."""

# ruff: noqa: S101

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from django_helisched.jobs.ids import first_id
from django_helisched.jobs.job import TERMINAL, State, UniqueUntil
from django_helisched.jobs.progress import ProgressReport
from django_helisched.jobs.retention import Cut, Keep, cut_of
from django_helisched.stores.base import WorkerReport
from django_helisched.testing.contract.factories import (
    LEASE,
    SECOND,
    TICK,
    all_jobs,
    canceled,
    enqueued,
    failure,
    new_job,
    only,
    outcomes,
    read,
    running,
    settled,
    state_of,
    success,
    undone,
)

if TYPE_CHECKING:
    from django_helisched.jobs.job import JobSnapshot
    from django_helisched.stores.base import JobStore, Pruned
    from django_helisched.testing.clock import ManualClock

DAY = timedelta(days=1)
WEEK = 7 * DAY

_numbers = count()


class PruneContract:
    """Which finished jobs are deleted, and what stays whatever its age."""

    def test_old_jobs_go_with_all_that_hangs_on_them(self, store: JobStore, clock: ManualClock) -> None:
        old = finished(store, args=["A"])
        clock.advance(WEEK + TICK)
        young = finished(store, args=["B"])
        assert pruned(store, Keep(age=WEEK)) == {old.id}
        assert [job.id for job in all_jobs(store)] == [young.id]
        assert (store.get(old.id), outcomes(store, old.id), store.args_of(old.id)["args"]) == (None, [], [])
        assert (outcomes(store, young.id), store.args_of(young.id)["args"]) == ([(1, "success")], ["B"])

    def test_age_is_counted_from_the_end(self, store: JobStore, clock: ManualClock) -> None:
        late = enqueued(store, id=_id(store), due_at=clock.now() + 90 * DAY)
        clock.advance(90 * DAY)
        settled(store, store.claim(worker_id="w", limit=1, lease=LEASE)[0], success())
        clock.advance(WEEK)
        assert not pruned(store, Keep(age=WEEK))
        clock.advance(TICK)
        assert pruned(store, Keep(age=WEEK)) == {late.id}

    @pytest.mark.parametrize("state", sorted(TERMINAL))
    def test_one_state_is_pruned_at_a_time(self, store: JobStore, clock: ManualClock, state: State) -> None:
        ended = {each: finished(store, each) for each in TERMINAL}
        clock.advance(DAY)
        assert pruned(store, Keep(age=SECOND), state) == {ended[state].id}
        assert len(all_jobs(store)) == 2

    def test_what_is_not_over_stays(self, store: JobStore, clock: ManualClock) -> None:
        enqueued(store, id=_id(store))
        running(store, id=_id(store))
        back = finished(store, State.FAILED)
        store.requeue(back.id)
        clock.advance(WEEK)
        assert not [job_id for state in TERMINAL for job_id in pruned(store, Keep(age=SECOND), state)]
        assert len(all_jobs(store)) == 3

    def test_the_newest_are_kept_by_number(self, store: JobStore, clock: ManualClock) -> None:
        jobs = [finished(store) for _ in range(5)]
        finished(store, State.FAILED)
        assert store.surplus(State.SUCCESS, 5) is None
        assert not pruned(store, Keep(count=5))
        assert store.surplus(State.SUCCESS, 4) == jobs[0].id
        assert pruned(store, Keep(count=4)) == {jobs[0].id}
        assert store.surplus(State.SUCCESS, 0) == jobs[4].id
        assert pruned(store, Keep(count=0)) == {job.id for job in jobs[1:]}
        assert len(all_jobs(store)) == 1

    def test_with_fewer_than_the_number_all_are_kept(self, store: JobStore) -> None:
        for _ in range(4):
            finished(store)
        assert not pruned(store, Keep(count=5))
        assert len(all_jobs(store)) == 4

    def test_a_key_keeps_its_job(self, store: JobStore, clock: ManualClock) -> None:
        keyed = finished(store, idempotency_key="k")
        clock.advance(WEEK)
        assert not pruned(store, Keep(age=DAY, count=0), key_ttl=WEEK)
        assert not store.enqueue([new_job(store, idempotency_key="k")])[0].created
        clock.advance(TICK)
        assert pruned(store, Keep(age=DAY), key_ttl=WEEK) == {keyed.id}
        assert store.enqueue([new_job(store, idempotency_key="k")])[0].created

    def test_a_key_that_was_freed_keeps_nothing(self, store: JobStore, clock: ManualClock) -> None:
        keyed = finished(store, idempotency_key="k", unique_until=UniqueUntil.TERMINAL)
        clock.advance(DAY + TICK)
        assert pruned(store, Keep(age=DAY), key_ttl=WEEK) == {keyed.id}

    def test_a_live_child_keeps_its_parent(self, store: JobStore, clock: ManualClock) -> None:
        parent = finished(store)
        child = enqueued(store, id=_id(store), parent_id=parent.id, queue="children")
        clock.advance(DAY)
        assert not pruned(store, Keep(age=SECOND))
        [claim] = store.claim(worker_id="w", limit=1, lease=LEASE, queues=only("children"))
        assert not pruned(store, Keep(age=SECOND))
        settled(store, claim, success())
        assert pruned(store, Keep(age=SECOND)) == {parent.id}
        clock.advance(DAY)
        assert pruned(store, Keep(age=SECOND)) == {child.id}

    def test_a_cancel_still_reaches_what_is_below_finished_ones(self, store: JobStore, clock: ManualClock) -> None:
        top = running(store, id=_id(store))
        line = [top.id]
        for _ in range(3):
            line.append(finished(store, parent_id=line[-1]).id)
        bottom = enqueued(store, id=_id(store), parent_id=line[-1])
        clock.advance(DAY)
        assert not pruned(store, Keep(age=SECOND))
        store.cancel(top.id)
        assert state_of(store, bottom.id) == State.CANCELED

    def test_a_line_in_which_each_job_makes_the_next_is_pruned_from_its_beginning(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        line = [finished(store)]
        for _ in range(3):
            line.append(finished(store, parent_id=line[-1].id))
        newest = enqueued(store, id=_id(store), parent_id=line[-1].id)
        clock.advance(DAY)
        assert pruned(store, Keep(age=SECOND), limit=2) == {job.id for job in line[:-1]}
        assert [job.id for job in all_jobs(store)] == [line[-1].id, newest.id]

    def test_children_stay_with_a_parent_that_is_kept_longer(self, store: JobStore, clock: ManualClock) -> None:
        parent = finished(store, State.FAILED)
        child = finished(store, parent_id=parent.id)
        clock.advance(DAY)
        assert not pruned(store, Keep(age=SECOND))
        assert pruned(store, Keep(age=SECOND), State.FAILED) == {parent.id}
        assert pruned(store, Keep(age=SECOND)) == {child.id}

    def test_a_step_looks_at_a_few_and_the_next_goes_on_behind_them(self, store: JobStore, clock: ManualClock) -> None:
        keyed = [finished(store, idempotency_key=f"k{number}") for number in range(3)]
        old = [finished(store) for _ in range(2)]
        clock.advance(DAY)
        cut = cut_now(store, Keep(age=SECOND))
        first = store.prune(cut, limit=3)
        assert (first.count, first.ids) == (0, frozenset())
        second = store.prune(cut, after=first.after, limit=3)
        assert (second.ids, second.after) == (frozenset(job.id for job in old), None)
        assert [job.id for job in all_jobs(store)] == [job.id for job in keyed]

    def test_a_walk_over_nothing_has_come_to_its_end(self, store: JobStore) -> None:
        assert store.prune(cut_now(store, Keep(age=SECOND))).after is None

    def test_a_pretended_prune_deletes_nothing_and_counts_as_a_real_one(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        line = [finished(store)]
        for _ in range(4):
            line.append(finished(store, parent_id=line[-1].id))
        clock.advance(DAY)
        before = all_jobs(store)
        told = walked(store, Keep(age=SECOND), limit=2, pretend=True)
        assert all_jobs(store) == before
        assert told == walked(store, Keep(age=SECOND), limit=2) == {job.id for job in line}

    def test_a_prune_that_is_undone_has_deleted_nothing(self, store: JobStore, clock: ManualClock) -> None:
        finished(store, args=["A"])
        clock.advance(DAY)
        before = all_jobs(store)
        with undone(store):
            assert pruned(store, Keep(age=SECOND))
            assert not all_jobs(store)
        assert all_jobs(store) == before
        assert store.args_of(before[0].id)["args"] == ["A"]

    def test_a_job_that_is_gone_is_unknown_to_every_verb(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, id=_id(store))
        store.progress([(claim, ProgressReport(done=1))])
        settled(store, claim, success())
        clock.advance(DAY)
        assert pruned(store, Keep(age=SECOND)) == {claim.id}
        assert store.progress_of(claim.id) is None
        assert (store.requeue(claim.id), store.cancel(claim.id), store.start(claim)) == (False, False, False)
        assert store.heartbeat([claim], lease=LEASE).lost == {claim.id}
        assert settled(store, claim, success()).name == "LOST"
        orphan = enqueued(store, parent_id=claim.id)
        assert read(store, orphan.id).state == State.PENDING

    def test_workers_that_are_long_gone_go(self, store: JobStore, clock: ManualClock) -> None:
        for name in ("a", "b", "c"):
            _report(store, name)
        clock.advance(DAY)
        _report(store, "b")
        clock.advance(TICK)
        assert _workers(store, DAY, limit=2, pretend=True) == 2
        assert _workers(store, DAY, limit=2) == 2
        assert _workers(store, DAY) == 0
        assert [worker.id for worker in store.live_workers(WEEK)] == ["b"]

    def test_a_worker_that_was_pruned_and_reports_again_is_there_again(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        _report(store, "a")
        clock.advance(DAY)
        assert _workers(store, SECOND) == 1
        _report(store, "a")
        assert [worker.id for worker in store.live_workers(SECOND)] == ["a"]


def finished(store: JobStore, state: State = State.SUCCESS, **fields: Any) -> JobSnapshot:
    """Store a job that is made now and ends now, and return it."""
    claim = running(store, **{"id": _id(store), **fields})
    if state is State.CANCELED:
        store.cancel(claim.id)
    ends = {State.SUCCESS: success(), State.FAILED: failure(), State.CANCELED: canceled()}
    settled(store, claim, ends[state])
    return read(store, claim.id)


def _id(store: JobStore) -> UUID:
    """Return an id that a process makes whose clock is the store's; those that exist are of the machine's clock."""
    return UUID(int=first_id(store.now()).int + next(_numbers))


def cut_now(store: JobStore, keep: Keep, state: State = State.SUCCESS, *, key_ttl: timedelta = WEEK) -> Cut:
    """Return what may go as of now."""
    surplus = None if keep.count is None else store.surplus(state, keep.count)
    cut = cut_of(state, keep, now=store.now(), key_ttl=key_ttl, surplus=surplus)
    return cut or Cut(
        state=state, before=first_id(store.now()), ended_before=None, surplus=None, keys_since=store.now()
    )


def pruned(store: JobStore, keep: Keep, state: State = State.SUCCESS, **options: Any) -> set[UUID]:
    """Prune one state to the end and return the ids of what is gone, which must be exactly what was told."""
    before = {job.id for job in all_jobs(store)}
    told = walked(store, keep, state, **options)
    assert before - {job.id for job in all_jobs(store)} == told
    return told


def walked(
    store: JobStore,
    keep: Keep,
    state: State = State.SUCCESS,
    *,
    limit: int = 100,
    pretend: bool = False,
    key_ttl: timedelta = WEEK,
) -> set[UUID]:
    """Walk one state to the end, and return the ids of what went, or would go."""
    cut = cut_now(store, keep, state, key_ttl=key_ttl)
    told: set[UUID] = set()
    step: Pruned | None = None
    while step is None or step.after is not None:
        after = None if step is None else step.after
        step = store.prune(cut, after=after, limit=limit, pretend=frozenset(told) if pretend else None)
        assert step.count == len(step.ids)
        assert not step.refused
        told |= step.ids
    return told


def _report(store: JobStore, name: str) -> None:
    store.report_worker(WorkerReport(id=name, started_at=store.now()))


def _workers(store: JobStore, age: timedelta, *, limit: int = 100, pretend: bool = False) -> int:
    gone, after, is_over = 0, None, False
    while not is_over:
        step = store.prune_workers(store.now() - age, after=after, limit=limit, pretend=pretend)
        gone, after = gone + step.count, step.after
        is_over = after is None
    return gone
