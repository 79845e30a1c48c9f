"""A mutation's begin and its end: BEGIN and COMMIT, which some databases get in one word with what is beside them."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.jobs.job import State
from django_helisched.models import Job
from django_helisched.stores.base import SettleAnswer, Settlement
from django_helisched.stores.orm import single_success
from django_helisched.testing.contract.factories import LEASE, START, last_attempt, outcomes, read, running, success
from tests.app.models import Ledger
from tests.races import bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_helisched.stores.orm import OrmCronStore, OrmJobStore

# Elsewhere Django's own COMMIT, which ends the transaction, comes after the end of the job.
BRINGS_COMMIT = connection.vendor == "postgresql"
# SQLite takes the unknown name, which is the error, for a text.
FIRST = [first for first in bodies.FIRST if connection.vendor != "sqlite" or first != "an error"]


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


@contextmanager
def taken_away() -> Iterator[None]:
    """Reverse the migration that makes the function, and apply it again."""
    functions = import_module("django_helisched.migrations.0002_end_of_a_mutation")
    with connection.schema_editor() as editor:
        functions.drop(None, editor)
    yield
    with connection.schema_editor() as editor:
        functions.create(None, editor)
    single_success._has_function.cache_clear()


@pytest.fixture
def without_function(transactional_db: None) -> Iterator[None]:
    """Take away the function of the migrations, as where the tables were made without them."""
    with taken_away():
        single_success._has_function.cache_clear()
        yield


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


@pytest.mark.only_on("postgresql", why="the driver's own trace of what is sent")
def test_a_short_mutation_is_two_messages(store, tick, tmp_path):
    bodies.write_with_hook.enqueue("once")
    tick()
    bodies.write_with_hook.enqueue("once")
    pgconn: Any = connection.connection.pgconn
    with (tmp_path / "trace").open("w+b") as trace:
        pgconn.trace(trace.fileno())
        try:
            tick()
        finally:
            pgconn.untrace()
        trace.seek(0)
        sent = [line.split(b'"', 1)[1].rstrip(b'"\n') for line in trace if b"\tQuery\t" in line]
    (number,) = [number for number, text in enumerate(sent) if Ledger._meta.db_table.encode() in text]
    first, last = sent[number : number + 2]
    assert first.startswith(b"BEGIN; INSERT INTO ")
    assert last.startswith(b"SELECT helisched_end(")
    assert last.endswith(b"; COMMIT")


@pytest.mark.parametrize("marker", ["kept", "never"])
@pytest.mark.parametrize("first", FIRST)
def test_whatever_a_mutation_asks_first_is_answered_in_its_transaction(store, tick, first, marker):
    job = bodies.begin_by.using(max_failures=1).enqueue(first, marker)
    tick()
    assert bodies.runs == [42, marker]
    ended = State.SUCCESS if marker == "kept" else State.FAILED
    assert (read(store, job.pk).state, Ledger.objects.count()) == (ended, int(marker == "kept"))
    assert is_at_rest()
    if BRINGS_COMMIT:
        with transaction.atomic():
            Ledger.objects.count()
            assert connection.connection.autocommit is False


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


@pytest.mark.usefixtures("without_function")
def test_tables_that_were_made_without_migrations_do(store, tick, still_open):
    job = bodies.write_with_hook.enqueue("once")
    still_open.clear()
    tick()
    assert still_open[-1] is True
    assert (read(store, job.pk).state, outcomes(store, job.pk)) == (State.SUCCESS, [(1, "success")])
    lost = bodies.write_and_lose.enqueue("never")
    tick()
    assert read(store, lost.pk).state == State.IN_PROGRESS
    assert [row.marker for row in Ledger.objects.all()] == ["once"]


def test_a_function_that_is_taken_away_while_mutations_run_fails_none_of_them(store, tick):
    bodies.write_with_hook.enqueue("before")
    tick()
    with taken_away():
        for marker in ("at once", "later"):
            job = bodies.write_with_hook.using(max_failures=1).enqueue(marker)
            tick()
            assert (read(store, job.pk).state, outcomes(store, job.pk)) == (State.SUCCESS, [(1, "success")])
    bodies.write_with_hook.enqueue("after")
    tick()
    assert sorted(row.marker for row in Ledger.objects.all()) == ["after", "at once", "before", "later"]
    assert bodies.runs == ["committed"] * 4


def ended(store: OrmJobStore, *, is_last: bool = True, **facts: Any) -> Any:
    """Write the end of a claim after something else in a transaction, and return its attempt."""
    claim = running(store)
    settlement = Settlement(**{"claim": claim, "outcome": success(), "started_at": START, **facts})
    with transaction.atomic():
        Ledger.objects.create(marker="before")
        assert store.settle([settlement], is_last=is_last) == [SettleAnswer.DONE]
    return last_attempt(store, claim.id)


@pytest.mark.parametrize(
    "value", [{"it's": ["\\", '"', "é☃\U0001f980", "%s", "\n\0"]}, "", "'; ROLLBACK; --", 0, False, None]
)
def test_whatever_a_result_and_a_log_hold_is_kept(store, value):
    log = f"it's \\ {value!r} %s é☃ $1 -- /* \n"
    kept = [ended(store, is_last=is_last, outcome=success(value), log=log) for is_last in (True, False)]
    assert [(one.result, one.log) for one in kept] == [(value, log), (value, log)]


def test_an_end_says_the_same_whether_or_not_the_transaction_ends_with_it(store, clock):
    at_once = ended(store)
    assert (at_once.started_at, at_once.ended_at, at_once.worker_id) == (START, clock.now(), "worker-1")
    columns = [
        field.attname for field in Job._meta.concrete_fields if field.attname not in ("id", "queue", "created_at")
    ]
    ended(store, is_last=False)
    one, other = Job.objects.values(*columns)
    assert one == other
    assert ended(store, started_at=None).started_at is None


@pytest.mark.only_on("postgresql", why="others keep a NUL")
def test_a_log_that_cannot_be_stored_is_refused_as_ever_and_undoes_all(store):
    for is_last in (True, False):
        with pytest.raises(DataError, match="NUL"):
            ended(store, is_last=is_last, log="a\0b")
    assert not Ledger.objects.exists()
    assert is_at_rest()


@pytest.mark.only_on("postgresql", why="a server that ends one connection from another")
def test_a_connection_that_is_lost_before_the_end_is_an_outage(store):
    claim = running(store)
    settlement = Settlement(claim=claim, outcome=success(), started_at=START)
    other = connection.copy()
    try:
        with pytest.raises(OperationalError), transaction.atomic():  # noqa: PT012
            Ledger.objects.create(marker="never")
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
            store.settle([settlement], is_last=True)
    finally:
        other.close()
        connection.close()
    assert (read(store, claim.id).state, Ledger.objects.exists()) == (State.IN_PROGRESS, False)


@pytest.mark.only_on("postgresql", why="a plan that is kept")
def test_an_end_whose_plan_was_made_for_a_short_table_does_not_read_all_of_a_long_one(store):
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE helisched_job")
    for _ in range(8):
        ended(store)
    claim = running(store)
    with transaction.atomic(), connection.cursor() as cursor:
        before = scans(cursor)
        cursor.execute("SELECT helisched_end(%s, %s, 1, NULL, now(), 'w', NULL, '')", [claim.id, claim.fence])
        assert [now - then for now, then in zip(scans(cursor), before, strict=True)] == [0, 1]


def scans(cursor: Any) -> tuple[int, int]:
    """Return how often the table of jobs was read whole, and by an index."""
    cursor.execute("SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'helisched_job'")
    found: tuple[int, int] = cursor.fetchone()
    return found


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
