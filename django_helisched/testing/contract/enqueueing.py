"""enqueue: what is stored is what was given."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from django_helisched.exceptions import BatchClosed, LeaseLost
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Hold, Kind, NewJob, Particulars, State, Trigger, UniqueUntil
from django_helisched.testing.contract.factories import ODD_VALUES, SECOND, START, all_jobs, enqueued, new_job, read

if TYPE_CHECKING:
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock

# A text in which anything may take a letter for its own.
ODD_TEXT = "50% %s %(id)s 'q' \"d\" \\ é"
ODD_FIELDS = {
    "fn_path": f"shop.{ODD_TEXT}",
    "kind": Kind.ACTION,
    "at_most_once": True,
    "queue": ODD_TEXT,
    "priority": -7,
    "max_failures": 9,
    "due_at": START - 60 * SECOND,
    "next_run_at": START + 60 * SECOND,
    "created_at": START - SECOND,
    "expires_at": START + 60 * SECOND,
    "timeout": timedelta(days=2, seconds=1.5),
    "args": [ODD_TEXT],
    "kwargs": {ODD_TEXT: ODD_TEXT},
    "context": ODD_TEXT,
    "options": {"o": ODD_TEXT},
    "meta": {"m": ODD_TEXT},
    "unique_until": UniqueUntil.TERMINAL,
    "limit_key": ODD_TEXT,
    "overlap_key": ODD_TEXT,
    "hold": Hold.UNKNOWN_FUNCTION,
    "app_version": ODD_TEXT,
    "name": ODD_TEXT,
    "space": ODD_TEXT,
    "trigger": Trigger.TASK,
    "on_complete": ODD_TEXT,
    "cron_id": uuid7(),
}
# What has tests of its own.
ELSEWHERE = {"id", "idempotency_key", "parent_id", "parent_fence", "batch_id"}


class EnqueueContract:
    """The birth of a job, without keys and parents."""

    def test_a_job_is_stored_with_every_field_that_was_given(self, store: JobStore) -> None:
        new = new_job(
            store,
            kind=Kind.ACTION,
            at_most_once=True,
            queue="mail",
            priority=-7,
            max_failures=1,
            due_at=START + SECOND,
            expires_at=START + 60 * SECOND,
            timeout=timedelta(seconds=1.5),
            idempotency_key="receipt:7",
            unique_until=UniqueUntil.TERMINAL,
            app_version="v2",
            name="receipt 7",
            space="acme",
            trigger=Trigger.TASK,
            on_complete="shop.jobs.done",
            cron_id=uuid7(),
        )
        job = store.enqueue([new])[0].job
        beside_the_row = {"args", "kwargs", "context", "options", "meta", "parent_fence"}
        for name in {item.name for item in fields(NewJob)} - beside_the_row:
            assert getattr(job, name) == getattr(new, name), name

    def test_the_answer_is_what_a_later_look_finds(self, store: JobStore) -> None:
        [result] = store.enqueue([new_job(store, args=[1])])
        assert result.created
        assert store.get(result.job.id) == result.job

    def test_a_new_job_is_pending_with_nothing_counted(self, store: JobStore) -> None:
        job = enqueued(store)
        assert job.state == State.PENDING
        assert (job.attempts, job.losses, job.attempt_count, job.fence) == (0, 0, 0, 0)
        assert (job.lease_holder, job.lease_expires_at, job.started_at, job.completed_at) == (None, None, None, None)
        assert (job.failure_reason, job.hold, job.last_error, job.cancel_requested_at) == ("", "", "", None)
        assert store.attempts_of(job.id) in ((), [])

    def test_arguments_come_back_exactly_as_they_went_in(self, store: JobStore) -> None:
        named = {f"key {number}": value for number, value in enumerate(ODD_VALUES)}
        new = new_job(store, args=ODD_VALUES, kwargs=named, context=named, options={"z": 1, "a": 2}, meta={"m": [1]})
        job = store.enqueue([new])[0].job
        stored = store.args_of(job.id)
        assert job.has_args
        assert repr(stored["args"]) == repr(ODD_VALUES)
        assert repr(stored["kwargs"]) == repr(named)
        assert repr(stored["context"]) == repr(named)
        assert list(stored["options"].items()) == [("z", 1), ("a", 2)]
        assert stored["meta"] == {"m": [1]}

    def test_a_job_without_arguments_has_empty_ones(self, store: JobStore) -> None:
        job = enqueued(store)
        assert not job.has_args
        assert dict(store.args_of(job.id)) == {"args": [], "kwargs": {}, "context": None, "options": {}, "meta": {}}

    def test_a_context_alone_is_kept(self, store: JobStore) -> None:
        job = enqueued(store, context={"k": 1})
        assert job.has_args
        assert store.args_of(job.id)["context"] == {"k": 1}

    def test_a_falsy_context_is_not_mistaken_for_none(self, store: JobStore) -> None:
        job = enqueued(store, context=0)
        assert store.args_of(job.id)["context"] == 0

    def test_what_the_caller_does_to_its_arguments_later_does_not_reach_the_job(self, store: JobStore) -> None:
        values = [1]
        job = enqueued(store, args=[values])
        values.append(2)
        assert store.args_of(job.id)["args"] == [[1]]

    def test_a_past_instant_is_kept_as_due_at(self, store: JobStore) -> None:
        job = enqueued(store, due_at=START - 60 * SECOND)
        assert (job.due_at, job.next_run_at) == (START - 60 * SECOND, START)

    def test_the_two_instants_of_one_hour_when_clocks_are_put_back_are_two(self, store: JobStore) -> None:
        first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
        jobs = [enqueued(store, due_at=due_at, next_run_at=due_at) for due_at in (first, first.replace(fold=1))]
        found = [row.due_at.astimezone(UTC) for row in (store.get(job.id) for job in jobs) if row is not None]
        assert found == [datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1)]

    @pytest.mark.parametrize("name", sorted({item.name for item in fields(NewJob)} - ELSEWHERE))
    def test_a_job_with_one_odd_field_is_stored_like_one_among_many(self, store: JobStore, name: str) -> None:
        odd = {name: ODD_FIELDS[name]}
        alone = enqueued(store, **odd)
        assert alone == store.get(alone.id)
        [second, other] = store.enqueue([new_job(store, **odd), new_job(store, name="other")])
        assert replace(alone, id=second.job.id) == second.job == store.get(second.job.id)
        assert store.args_of(alone.id) == store.args_of(second.job.id)
        plain = enqueued(store)
        assert store.get(plain.id) == replace(other.job, id=plain.id, name="")

    def test_many_jobs_are_answered_in_their_order(self, store: JobStore) -> None:
        new = [new_job(store, name=str(number), args=[number] if number % 2 else []) for number in range(7)]
        results = store.enqueue([*new[4:], *new[:4]])
        assert [result.job.name for result in results] == ["4", "5", "6", "0", "1", "2", "3"]
        assert [store.args_of(result.job.id)["args"] for result in results] == [[], [5], [], [], [1], [], [3]]

    def test_no_jobs_are_no_work(self, store: JobStore) -> None:
        assert store.enqueue([]) == []
        assert all_jobs(store) == []

    def test_nothing_changes_what_a_job_is(self, store: JobStore, clock: ManualClock) -> None:
        job = enqueued(store, name="n", space="s", args=[1])
        clock.advance(5)
        store.cancel(job.id)
        store.requeue(job.id)
        later = read(store, job.id)
        same = ("id", "fn_path", "kind", "due_at", "created_at", "name", "space", "queue", "priority", "max_failures")
        assert [getattr(later, name) for name in same] == [getattr(job, name) for name in same]
        assert store.args_of(job.id)["args"] == [1]

    def test_jobs_that_are_alike_are_stored_like_each_by_itself(self, store: JobStore) -> None:
        pattern = new_job(
            store,
            args=[0],
            kind=Kind.ACTION,
            queue="mail",
            name="n",
            context={"k": 1},
            options={"o": [1]},
            due_at=START,
        )
        odd = [[value] for value in ODD_VALUES] + [['"', "\\", "\n\t\r", "\\n", "%s {} '", "\u2028", "NULL", ""]]
        each = [Particulars(uuid7(), args, {"key": args[0]}) for args in odd] + [Particulars(uuid7(), [1], {})]
        row = store.enqueue_alike(pattern, each)
        single = store.enqueue([pattern])[0].job
        assert row == single
        for one in each:
            assert store.get(one.id) == replace(single, id=one.id)
            stored = store.args_of(one.id)
            assert repr((stored["args"], stored["kwargs"])) == repr((one.args, one.kwargs))
            assert (stored["context"], stored["options"], stored["meta"]) == ({"k": 1}, {"o": [1]}, {})
        assert len(all_jobs(store)) == len(each) + 1

    def test_jobs_that_are_alike_may_have_no_arguments(self, store: JobStore) -> None:
        each = [Particulars(uuid7(), [], {}) for _ in range(3)]
        row = store.enqueue_alike(new_job(store), each)
        assert not row.has_args
        assert sorted(job.id for job in all_jobs(store)) == [one.id for one in each]

    def test_jobs_that_are_alike_are_born_canceled_together(self, store: JobStore) -> None:
        parent = enqueued(store)
        store.cancel(parent.id)
        each = [Particulars(uuid7(), [number], {}) for number in range(3)]
        row = store.enqueue_alike(new_job(store, parent_id=parent.id, args=[0]), each)
        assert row.state == State.CANCELED
        assert [store.get(one.id) for one in each] == [replace(row, id=one.id) for one in each]

    def test_jobs_that_are_alike_are_refused_together(self, store: JobStore) -> None:
        each = [Particulars(uuid7(), [number], {}) for number in range(3)]
        lost = new_job(store, parent_id=enqueued(store).id, parent_fence=7, args=[0])
        with pytest.raises(LeaseLost):
            store.enqueue_alike(lost, each)
        with pytest.raises(BatchClosed):
            store.enqueue_alike(new_job(store, batch_id=uuid7(), args=[0]), each)
        assert len(all_jobs(store)) == 1
