"""A mutation's end and its COMMIT, which some databases get in one word."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.jobs.job import State
from django_helisched.models import Job
from django_helisched.stores.base import SettleAnswer, Settlement
from django_helisched.testing.contract.factories import LEASE, START, outcomes, read, running, success
from tests.app.models import Ledger
from tests.races import bodies

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.stores.orm import OrmCronStore, OrmJobStore

# Elsewhere Django's own COMMIT, which ends the transaction, comes after the end of the job.
BRINGS_COMMIT = connection.vendor == "postgresql"


@pytest.fixture
def tick(store: OrmJobStore, crons: OrmCronStore) -> Callable[[], Any]:
    return Driver(store, crons, DriverConfig(worker_id="w", lease=LEASE), seats=InlineSeats(1)).tick


@pytest.fixture
def still_open(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note at each of Django's commits whether there was a transaction to commit."""
    found: list[bool] = []
    commit = connection.commit

    def noted() -> None:
        found.append(is_open())
        commit()

    monkeypatch.setattr(connection, "commit", noted)
    return found


def is_open() -> bool:
    """Tell whether the server, asked past Django, has a transaction open."""
    if connection.vendor == "postgresql":
        return bool(connection.connection.pgconn.transaction_status)
    if connection.vendor == "sqlite":
        return bool(connection.connection.in_transaction)
    connection.connection.query("SELECT @@in_transaction")
    ((answer,),) = connection.connection.store_result().fetch_row()
    return bool(int(answer))


def is_at_rest() -> bool:
    """Tell whether Django and the server agree that no transaction is open."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return connection.get_autocommit() and not connection.in_atomic_block and not connection.needs_rollback


def test_the_end_of_a_mutation_brings_the_commit_with_it_and_hooks_run_after_it(store, tick, still_open):
    job = bodies.write_with_hook.enqueue("once")
    still_open.clear()
    tick()
    assert still_open[-1] is not BRINGS_COMMIT
    assert bodies.runs == ["committed"]
    assert Ledger.objects.filter(marker="once").count() == 1
    assert (read(store, job.pk).state, outcomes(store, job.pk)) == (State.SUCCESS, [(1, "success")])
    assert is_at_rest()


def test_whoever_watches_the_statements_sees_each_of_them(store, tick, still_open):
    job = bodies.write_with_hook.enqueue("once")
    still_open.clear()
    with CaptureQueriesContext(connection):
        tick()
    assert still_open[-1] is True
    assert read(store, job.pk).state == State.SUCCESS


def test_a_mutation_whose_claim_is_lost_leaves_nothing_and_runs_no_hook(store, tick):
    job = bodies.write_and_lose.enqueue("never")
    tick()
    assert bodies.runs == []
    assert not Ledger.objects.exists()
    assert (read(store, job.pk).state, outcomes(store, job.pk)) == (State.IN_PROGRESS, [])
    assert is_at_rest()


def test_a_cancel_request_that_comes_first_undoes_a_mutation(store, tick):
    job = bodies.write_and_be_canceled.enqueue("never")
    tick()
    assert bodies.runs == []
    assert not Ledger.objects.exists()
    # The body's own request was undone with all the rest.
    assert (read(store, job.pk).state, outcomes(store, job.pk)) == (State.CANCELED, [(1, "success")])
    assert is_at_rest()


def test_what_the_commit_refuses_undoes_a_mutation_with_its_end(store, tick):
    job = bodies.write_a_receipt_of_nothing.using(max_failures=1).enqueue("never")
    tick()
    assert bodies.runs == []
    assert not Ledger.objects.exists()
    row = read(store, job.pk)
    assert (row.state, outcomes(store, job.pk)) == (State.FAILED, [(1, "failed")])
    assert IntegrityError.__name__ in row.last_error
    assert is_at_rest()


def test_inside_a_transaction_of_the_caller_nothing_is_committed(store, tick):
    job = bodies.write_with_hook.enqueue("undone")
    with transaction.atomic():
        tick()
        assert read(store, job.pk).state == State.SUCCESS
        transaction.set_rollback(True)
    assert read(store, job.pk).state == State.PENDING
    assert not Ledger.objects.exists()


@pytest.mark.parametrize("is_last", [True, False])
def test_a_lost_claim_is_answered_whether_or_not_the_transaction_ends_with_it(store, is_last):
    claim = running(store)
    Job.objects.filter(pk=claim.id).update(fence=claim.fence + 1)
    settlement = Settlement(claim=claim, outcome=success(), started_at=START + timedelta(seconds=1))
    with transaction.atomic():
        Ledger.objects.create(marker="before")
        assert store.settle([settlement], is_last=is_last) == [SettleAnswer.LOST]
        transaction.set_rollback(True)
    assert not Ledger.objects.exists()
    assert outcomes(store, claim.id) == []
