"""Enqueue: one row in the caller's own transaction, at a known price."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, connection, transaction
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext, override_settings

from django_helisched import action, context, mutation, scheduler, wiring
from django_helisched.exceptions import InvalidArguments, JobEnded, LeaseLost
from django_helisched.functions.call import Call, enqueue_calls
from django_helisched.jobs.job import DEFAULT_QUEUE, ClaimedJob
from django_helisched.models import Job, JobArgs
from django_helisched.models.fields import KeyField

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@mutation
def close_order(order_id: int) -> None:
    """Do nothing: these tests never run a body."""


@action(queue="mail", priority=10, max_failures=5, timeout=timedelta(seconds=30))
def send_receipt(order_id: int, *, copy: bool = False) -> str:
    return f"sent {order_id}"


@action(at_most_once=True)
def charge_card(order_id: int) -> None: ...


@mutation
def receipt_done(job_id: str, context: Any, result: Any) -> None: ...


def statements(captured: CaptureQueriesContext) -> list[str]:
    """Return the INSERTs and SELECTs, without transaction control."""
    return [sql for sql in executed(captured) if sql.startswith(("INSERT", "SELECT", "WITH"))]


def executed(captured: CaptureQueriesContext) -> list[str]:
    """Return all but the wake-up after the commit."""
    return [query["sql"] for query in captured.captured_queries if "pg_notify" not in query["sql"]]


def claimed(job: Job) -> ClaimedJob:
    (claim,) = wiring.job_store().claim(worker_id="tester", limit=1, lease=timedelta(seconds=30))
    assert claim.id == job.id
    return claim


def test_a_rolled_back_transaction_leaves_no_row():
    class Changed(Exception):
        pass

    with suppress(Changed), transaction.atomic():
        close_order.enqueue(7)
        send_receipt.using(idempotency_key="receipt:7").enqueue(7)
        assert Job.objects.count() == 2
        raise Changed
    assert not Job.objects.exists()
    assert not JobArgs.objects.exists()


def test_a_committed_job_is_visible_before_any_hook_runs():
    seen: list[int] = []
    with transaction.atomic():
        transaction.on_commit(lambda: seen.append(Job.objects.count()))
        close_order.enqueue(7)
    assert seen == [1]


def test_the_job_is_returned_as_stored():
    job = send_receipt.using(name="receipt 7", space="acme", context={"order": 7}).enqueue(7, copy=True)
    stored = Job.objects.get(pk=job.pk)
    for field in Job._meta.concrete_fields:
        assert getattr(job, field.attname) == getattr(stored, field.attname), field.attname
    assert (stored.queue, stored.priority, stored.max_failures) == ("mail", 10, 5)
    assert (stored.kind, stored.state, stored.timeout) == ("action", "pending", timedelta(seconds=30))
    payload = JobArgs.objects.get(pk=job.pk)
    assert (payload.args, payload.kwargs, payload.context) == ([7], {"copy": True}, {"order": 7})


def test_one_job_costs_at_most_two_statements():
    wiring.job_store().now()
    with CaptureQueriesContext(connection) as captured:
        close_order.enqueue(7)
    assert len(statements(captured)) == (1 if connection.vendor == "postgresql" else 2)


def test_a_job_without_arguments_costs_one_statement_and_no_transaction():
    wiring.job_store().now()
    with CaptureQueriesContext(connection) as captured:
        scheduler.enqueue(nothing_to_say)
    assert len(executed(captured)) == 1


@mutation
def nothing_to_say() -> None: ...


def test_an_insert_names_no_column_that_is_null():
    wiring.job_store().now()
    with CaptureQueriesContext(connection) as captured:
        job = close_order.enqueue(7)
    assert all("NULL" not in sql for sql in statements(captured))
    stored = Job.objects.get(pk=job.pk)
    assert (stored.started_at, stored.key_digest, stored.batch_id, stored.timeout) == (None, None, None, None)
    assert JobArgs.objects.get(pk=job.pk).context is None


def test_a_function_that_was_enqueued_before_hears_of_a_setting_that_changes():
    assert close_order.enqueue(7).max_failures == 3
    with override_settings(HELISCHED={"MAX_FAILURES": 8, "APP_VERSION": "v2"}):
        job = close_order.enqueue(7)
        assert (job.max_failures, job.app_version) == (8, "v2")
    assert close_order.enqueue(7).app_version == ""


def test_options_are_checked_at_each_enqueue_and_their_values_are_those_of_that_instant():
    order: dict[str, Any] = {"order": 7}
    function = close_order.using(context=order)
    function.enqueue(7)
    order["order"] = 8
    job = function.enqueue(7)
    assert JobArgs.objects.get(pk=job.pk).context == {"order": 8}
    order["order"] = object()
    with pytest.raises(InvalidArguments, match="context"):
        function.enqueue(7)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lease_holder": "somebody"},
        {"lease_expires_at": NOON},
        {"lease_holder": "somebody", "lease_expires_at": NOON},
        {"state": "in_progress"},
        {"state": "in_progress", "lease_holder": "somebody"},
        {"state": "in_progress", "lease_holder": "somebody", "lease_expires_at": NOON, "completed_at": NOON},
        {"completed_at": NOON},
        {"state": "success"},
        {"state": "canceled", "completed_at": NOON, "lease_expires_at": NOON},
        {"state": "done"},
    ],
)
def test_the_database_refuses_a_row_whose_state_lease_and_end_do_not_go_together(wrong: dict[str, Any]):
    job = Job.objects.get(pk=close_order.enqueue(7).pk)
    with pytest.raises(IntegrityError), transaction.atomic():
        Job.objects.filter(pk=job.pk).update(**wrong)
    for right in (
        {"state": "in_progress", "lease_holder": "somebody", "lease_expires_at": NOON},
        {"state": "failed", "completed_at": NOON, "lease_holder": None, "lease_expires_at": None},
        {"state": "pending", "completed_at": None},
    ):
        assert Job.objects.filter(pk=job.pk).update(**right) == 1


def test_postgresql_is_not_asked_to_measure_the_texts_of_a_job():
    if connection.vendor != "postgresql":
        return
    keys = {field.column for field in Job._meta.concrete_fields if isinstance(field, KeyField)}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_name = 'helisched_job' AND character_maximum_length IS NOT NULL"
        )
        assert not keys & {name for (name,) in cursor.fetchall()}


def test_a_keyed_job_costs_at_most_three_statements_taken_or_not():
    wiring.job_store().now()
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            close_order.using(idempotency_key="order:7").enqueue(7)
        assert len(statements(captured)) <= 3


def test_a_child_costs_one_read_more():
    parent = close_order.enqueue(7)
    claim = claimed(parent)
    running = context.JobContext(id=claim.id, fence=claim.fence)
    with context.entered(running), CaptureQueriesContext(connection) as captured:
        child = close_order.enqueue(8)
    assert len(statements(captured)) <= 3
    assert child.parent_id == parent.pk


def test_a_taken_key_returns_the_older_job_unchanged_and_leaves_the_transaction_usable():
    first = close_order.using(idempotency_key="k", name="first").enqueue(1)
    with transaction.atomic():
        second = send_receipt.using(idempotency_key="k", name="second").enqueue(2)
        assert Job.objects.count() == 1
    assert second.pk == first.pk
    assert (second.name, second.fn_path) == ("first", close_order.path)
    assert JobArgs.objects.get(pk=first.pk).args == [1]


def test_a_key_belongs_to_its_space_and_compares_byte_by_byte():
    keys = [("", "k"), ("acme", "k"), ("", "K"), ("", "é"), ("", "e")]
    jobs = [close_order.using(idempotency_key=key, space=space).enqueue(1) for space, key in keys]
    assert len({job.pk for job in jobs}) == len(keys)


def test_run_at_wins_over_run_after_and_the_asked_instant_is_kept():
    past = datetime(2020, 1, 1, tzinfo=UTC)
    job = scheduler.enqueue(close_order, {"order_id": 7}, run_after=9999, run_at=past)
    assert job.due_at == past
    assert job.next_run_at == job.created_at


def test_a_delay_is_counted_from_the_one_reading_of_the_clock():
    job = close_order.run_after(1.5, 7)
    assert job.next_run_at - job.created_at == timedelta(seconds=1.5)
    assert close_order.run_after(timedelta(minutes=5), order_id=7).due_at > job.due_at


def test_a_list_is_positional_a_dict_is_keywords_and_none_is_neither():
    assert JobArgs.objects.get(pk=scheduler.enqueue(close_order.path, [7]).pk).args == [7]
    assert JobArgs.objects.get(pk=scheduler.enqueue(close_order, {"order_id": 7}).pk).kwargs == {"order_id": 7}
    assert not scheduler.enqueue(nothing_to_say, None).has_args


def test_on_complete_is_resolved_when_the_original_is_enqueued():
    job = close_order.using(on_complete=receipt_done, context={"order": 1}).enqueue(1)
    options = JobArgs.objects.get(pk=job.pk).options["on_complete"]
    assert job.on_complete == receipt_done.path
    assert (options["kind"], options["queue"], options["max_failures"]) == ("mutation", DEFAULT_QUEUE, 3)


def test_a_job_that_runs_at_most_once_has_a_budget_of_one():
    assert charge_card.enqueue(7).max_failures == 1
    with pytest.raises(TypeError, match="at_most_once"):
        charge_card.using(max_failures=2).enqueue(7)


def test_aenqueue_stores_the_job_from_asynchronous_code():
    job = async_to_sync(close_order.aenqueue)(7)
    assert Job.objects.get(pk=job.pk).fn_path == close_order.path


def test_a_worker_that_lost_its_lease_can_enqueue_nothing():
    parent = close_order.enqueue(7)
    claim = claimed(parent)
    stale = context.JobContext(id=claim.id, fence=claim.fence - 1)
    with context.entered(stale), pytest.raises(LeaseLost):
        close_order.enqueue(8)
    assert Job.objects.count() == 1


def test_a_child_of_a_parent_that_was_asked_to_cancel_is_born_canceled():
    parent = close_order.enqueue(7)
    claim = claimed(parent)
    assert scheduler.cancel(parent)
    with context.entered(context.JobContext(id=claim.id, fence=claim.fence)):
        child = close_order.using(idempotency_key="child").enqueue(8)
    assert (child.state, child.key_digest) == ("canceled", None)
    assert child.completed_at is not None


def test_the_context_of_an_ended_job_enqueues_nothing():
    ended = context.JobContext(id=close_order.enqueue(7).pk, fence=1)
    with context.entered(ended):
        pass
    token = context._current.set(ended)
    try:
        with pytest.raises(JobEnded, match="parent=None"):
            close_order.enqueue(8)
        assert close_order.using(parent=None).enqueue(8).parent_id is None
    finally:
        context._current.reset(token)


def test_a_plain_call_runs_the_body_and_stores_nothing():
    assert send_receipt(7) == "sent 7"
    assert not Job.objects.exists()


def test_a_cancel_reaches_a_family_larger_than_one_statement_can_name():
    root = close_order.enqueue(0)
    jobs = enqueue_calls([Call(close_order.using(parent=root), [number]) for number in range(1_100)])
    assert scheduler.cancel(root)
    assert Job.objects.filter(pk__in=[job.pk for job in jobs[:500]], state="canceled").count() == 500
    assert not Job.objects.exclude(state="canceled").exists()


def test_many_jobs_are_stored_in_order_by_a_few_statements():
    wiring.job_store().now()
    entries: list[Any] = [(close_order, [number]) for number in range(1_000)]
    entries.append((send_receipt.path, {"order_id": 7}, {"run_after": 60, "name": "later", "priority": 3}))
    with CaptureQueriesContext(connection) as captured:
        jobs = scheduler.enqueue_many(entries)
    # Rows and arguments, in as many statements as the database's parameters allow.
    assert len(statements(captured)) <= 60
    assert [job.pk for job in jobs] == list(Job.objects.order_by("id").values_list("id", flat=True))
    last = Job.objects.get(pk=jobs[-1].pk)
    assert (last.name, last.priority, last.queue) == ("later", 3, "mail")
    assert last.due_at - last.created_at == timedelta(seconds=60)


def test_many_jobs_that_are_alike_are_returned_as_stored_and_cost_few_statements():
    wiring.job_store().now()
    chosen = send_receipt.using(name="receipt", space="acme", context={"order": 7})
    entries: list[Any] = [(chosen, {"order_id": number, "copy": True}) for number in range(1_000)]
    with CaptureQueriesContext(connection) as captured:
        jobs = scheduler.enqueue_many(entries)
    if connection.vendor == "postgresql":
        assert len(executed(captured)) == 1
    assert [job.pk for job in jobs] == list(Job.objects.order_by("id").values_list("id", flat=True))
    stored = Job.objects.get(pk=jobs[7].pk)
    without_state = [
        {name: value for name, value in vars(job).items() if name != "_state"} for job in (jobs[7], stored)
    ]
    assert without_state[0] == without_state[1]
    assert list(without_state[0]) == list(without_state[1])
    payload = JobArgs.objects.get(pk=stored.pk)
    assert (payload.args, payload.kwargs, payload.context) == ([], {"order_id": 7, "copy": True}, {"order": 7})


def test_calls_that_differ_in_more_than_their_arguments_keep_the_difference():
    later = datetime(2040, 1, 1, tzinfo=UTC)
    entries: list[Any] = [
        (close_order, [1]),
        (close_order, [2], {"run_at": later}),
        (close_order, [3], {"run_after": 60}),
    ]
    jobs = scheduler.enqueue_many(entries)
    assert jobs[1].due_at == later
    assert jobs[2].due_at - jobs[0].due_at == timedelta(seconds=60)
    keyed = close_order.using(idempotency_key="k")
    assert len({job.pk for job in scheduler.enqueue_many([(keyed, [1]), (keyed, [2])])}) == 1


def test_of_many_jobs_with_one_bad_one_none_is_stored():
    with pytest.raises(TypeError) as error:
        scheduler.enqueue_many([(close_order, [1]), (close_order, {"oder_id": 2})])
    assert error.value.__notes__ == ["It is number 1 of many, counted from 0. Nothing was enqueued."]
    with pytest.raises(TypeError):
        scheduler.enqueue_many([(close_order, [1]), (close_order, [2], {"prioriti": 3})])
    assert not Job.objects.exists()


def test_whoever_listens_to_the_model_hears_of_enqueued_jobs():
    heard = []

    def hear(instance: Job, **_: object) -> None:
        heard.append(instance.pk)

    quiet = send_receipt.enqueue(7)
    post_init.connect(hear, sender=Job)
    try:
        loud = send_receipt.enqueue(7)
    finally:
        post_init.disconnect(hear, sender=Job)
    assert heard == [loud.pk]
    for job in (quiet, loud):
        stored = Job.objects.get(pk=job.pk)
        assert (job._state.db, job._state.adding) == (stored._state.db, stored._state.adding)
        assert {name: value for name, value in vars(job).items() if name != "_state"} == {
            name: value for name, value in vars(stored).items() if name != "_state"
        }
        assert not job.get_deferred_fields()
