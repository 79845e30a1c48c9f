"""The driver on the database that the settings select: what commits, and what a connection is left like."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError, connection, transaction

from django_helisched import wiring
from django_helisched.driver import InlineSeats, ThreadSeats, connections
from django_helisched.driver.booting import migrated, missing_tables
from django_helisched.driver.cutting import cuttable
from django_helisched.driver.events import What
from django_helisched.exceptions import NotMigrated
from django_helisched.models import Attempt, Job
from django_helisched.stores.orm import OrmCronStore, OrmJobStore
from tests.app import jobs as bodies
from tests.app.models import Ledger
from tests.driver.test_heartbeat import run_all, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.driver import Driver
    from django_helisched.testing.clock import ManualClock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def jobs(clock: ManualClock) -> OrmJobStore:
    return OrmJobStore("default", clock)


@pytest.fixture
def crons(clock: ManualClock) -> OrmCronStore:
    return OrmCronStore("default", clock)


@pytest.fixture(autouse=True)
def wired(jobs: Any, crons: Any) -> Iterator[None]:
    with wiring.replaced(jobs, crons):
        yield
    bodies.seen.clear()


def outcomes(job: Job) -> list[str]:
    return list(Attempt.objects.filter(job=job).order_by("number").values_list("outcome", flat=True))


def test_a_mutation_and_its_success_commit_together(driver: Driver):
    job = bodies.write.enqueue("a")
    driver.tick()
    job.refresh_from_db()
    assert job.state == "success"
    assert Ledger.objects.filter(marker="a").count() == 1


def test_a_failed_mutation_leaves_nothing_and_one_effect_in_the_end(driver: Driver, clock):
    job = bodies.write_until.enqueue(3, "a")
    for effects in (0, 0, 1):
        driver.tick()
        assert Ledger.objects.count() == effects
        clock.advance(60)
    assert outcomes(job) == ["failed", "failed", "success"]


def test_what_an_action_wrote_before_it_failed_stays(driver: Driver):
    bodies.write_and_fail.enqueue("a")
    driver.tick()
    assert Ledger.objects.count() == 1


def test_a_mutation_canceled_while_it_runs_leaves_nothing(driver: Driver, jobs):
    job = bodies.write.enqueue("a")
    driver._announce._observe = lambda event: jobs.cancel(job.pk) if event.what is What.JOB_STARTED else None
    driver.tick()
    job.refresh_from_db()
    assert (job.state, Ledger.objects.count(), outcomes(job)) == ("canceled", 0, ["success"])


def test_a_mutation_whose_claim_is_lost_leaves_nothing(driver: Driver, jobs):
    job = bodies.write.enqueue("a")

    def force(event: Any) -> None:
        if event.what is What.JOB_STARTED:
            jobs.cancel(job.pk, force=True)

    driver._announce._observe = force
    driver.tick()
    assert Ledger.objects.count() == 0


def test_async_code_writes_on_the_connection_of_its_seat(driver: Driver):
    job = bodies.write_async.enqueue("a")
    driver.tick()
    assert Attempt.objects.get(job=job).result == 1


@pytest.mark.parametrize("body", [bodies.leave_transaction_open, bodies.run_without_autocommit])
def test_what_an_action_left_uncommitted_is_rolled_back_and_its_end_is_not(driver: Driver, body):
    job = body.enqueue("a")
    driver.tick()
    job.refresh_from_db()
    assert job.state == "success"
    assert Ledger.objects.count() == 0
    assert connection.get_autocommit()
    assert not connection.in_atomic_block


def test_a_mutation_that_leaves_a_block_open_fails_and_says_why(driver: Driver):
    job = bodies.leave_savepoint_open.using(max_failures=1).enqueue("a")
    driver.tick()
    job.refresh_from_db()
    assert job.state == "failed"
    assert "left a transaction open on default" in job.last_error
    assert Ledger.objects.count() == 0
    assert not connection.in_atomic_block


def test_a_callers_transaction_is_left_as_it_was(driver: Driver):
    with transaction.atomic():
        bodies.leave_transaction_open.enqueue("a")
        bodies.write.enqueue("b")
        driver.tick()
        assert connection.in_atomic_block
        assert connection.savepoint_ids == []
    assert [row.marker for row in Ledger.objects.all()] == ["b"]


def test_seats_run_many_mutations_each_once(make_driver):
    driver = make_driver(seats=ThreadSeats(2))
    made = [bodies.write.enqueue(f"{number}") for number in range(30)]
    run_all(driver)
    driver.close()
    assert Ledger.objects.count() == len(made)
    assert {job.state for job in Job.objects.all()} == {"success"}


def test_async_jobs_write_on_few_connections_however_many_they_are(make_driver):
    driver = make_driver(own_seats=True, threads=1, async_jobs=50, async_orm=3)
    made = [bodies.write_alone.enqueue(f"{number}") for number in range(60)]
    made += [bodies.write.enqueue(f"thread {number}") for number in range(5)]
    run_all(driver)
    lanes = [thread.name for thread in threading.enumerate() if thread.name.startswith("helisched-orm")]
    driver.close()
    assert Ledger.objects.count() == len(made)
    assert {job.state for job in Job.objects.all()} == {"success"}
    assert len(lanes) == 3


def test_a_transaction_that_an_async_job_leaves_open_across_an_await_is_rolled_back(make_driver, caplog):
    driver = make_driver(own_seats=True, threads=0, async_jobs=2, async_orm=1)
    bodies.leave_transaction_open_across_awaits.enqueue("a")
    bodies.write_alone.enqueue("b")
    run_all(driver)
    driver.close()
    assert sorted(row.marker for row in Ledger.objects.all()) == ["a", "b"]
    assert "left a transaction open on default across an await" in caplog.text


def test_a_connection_that_an_async_job_broke_costs_the_next_one_nothing(make_driver):
    driver = make_driver(own_seats=True, threads=0, async_jobs=1, async_orm=1)
    broken, after = bodies.break_connection.enqueue(), bodies.write_alone.enqueue("after")
    run_all(driver)
    driver.close()
    assert outcomes(broken) == ["failed"]
    assert outcomes(after) == ["success"]


# Where the exception lands in a finalizer Python prints and forgets it; the next one stops the body.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_body_stopped_in_the_middle_of_a_query_leaves_its_seat_in_order(make_driver, clock):
    driver = make_driver(seats=ThreadSeats(1))
    stopped = [body.enqueue() for body in (bodies.query_for_ever, bodies.write_for_ever) for _ in range(10)]
    Job.objects.update(timeout=timedelta(seconds=0.01), max_failures=1)
    after = bodies.write.enqueue("after")
    run_all(driver)
    driver.close()
    assert {Job.objects.get(pk=job.pk).failure_reason for job in stopped} == {"timeout"}
    assert {outcome for job in stopped for outcome in outcomes(job)} == {"timeout"}
    assert Job.objects.get(pk=after.pk).state == "success"
    assert [row.marker for row in Ledger.objects.all()] == ["after"]


def test_a_broken_connection_costs_the_next_job_nothing():
    ended: list[bool] = []

    def seat() -> None:
        with connections.tidy("default"):
            connection.ensure_connection()
            connection.connection.close()
            connection.errors_occurred = True
        with connections.tidy("default"):
            ended.append(Ledger.objects.exists())
        connections.drop_all()

    thread = threading.Thread(target=seat)
    thread.start()
    thread.join(20)
    assert ended == [False]


def test_the_seats_connection_is_kept_for_the_next_job():
    kept: list[bool] = []

    def seat() -> None:
        with connections.tidy("default"):
            Ledger.objects.exists()
            used = connection.connection
        kept.append(used is not None and connection.connection is used)
        connections.drop_all()

    thread = threading.Thread(target=seat)
    thread.start()
    thread.join(20)
    assert kept == [True]


def test_missing_tables_are_named_with_the_command_that_makes_them():
    with connection.schema_editor() as editor:
        editor.execute("ALTER TABLE helisched_worker RENAME TO helisched_worker_away")
    try:
        assert missing_tables("default") == ["helisched_worker"]
        with pytest.raises(NotMigrated) as raised, migrated("default"):
            wiring.job_store().live_workers(timedelta(seconds=1))
    finally:
        with connection.schema_editor() as editor:
            editor.execute("ALTER TABLE helisched_worker_away RENAME TO helisched_worker")
    assert str(raised.value) == (
        'table helisched_worker is missing in database "default". Run: python manage.py migrate helisched'
    )


def test_a_boot_reports_the_worker_and_the_loop_can_follow(make_driver):
    driver = make_driver(seats=InlineSeats(1))
    driver.boot()
    assert wiring.job_store().live_workers(timedelta(seconds=1))[0].id == driver.config.worker_id


def test_a_mutation_leaves_its_last_progress_and_what_it_logged_with_its_success(driver: Driver, jobs):
    job = bodies.count_and_write.enqueue("a")
    driver.tick()
    found = jobs.progress_of(job.pk)
    assert (found.done, found.total, found.message) == (1, 2, "a")
    assert Attempt.objects.get(job=job).log.endswith("WARNING tests.app.jobs: wrote a")


def test_a_mutation_that_is_undone_leaves_its_progress_and_what_it_logged_all_the_same(driver: Driver, jobs):
    job = bodies.count_and_write.using(max_failures=1).enqueue("fail")
    driver.tick()
    assert not Ledger.objects.exists()
    assert jobs.progress_of(job.pk).done == 1
    assert Attempt.objects.get(job=job).log.endswith("WARNING tests.app.jobs: wrote fail")


def test_an_abandoned_mutation_can_write_nothing_more_and_holds_nothing(make_driver: Any, jobs, events, clock):
    """Its connection is cut, so that not even its own retry has to wait for what it had locked."""
    bodies.gates["g"] = threading.Event()
    driver = make_driver(seats=ThreadSeats(2), threads=2, timeout_grace=timedelta(seconds=0.05))
    job = bodies.write_and_sit.enqueue("g", "a")
    Job.objects.filter(pk=job.pk).update(timeout=timedelta(seconds=0.05))
    driver.tick()
    wait_for(lambda: outcomes(job) == ["timeout"])
    assert Ledger.objects.count() == 0
    clock.advance(60)
    driver.tick()
    wait_for(lambda: outcomes(job) == ["timeout", "success"])
    bodies.gates["g"].set()
    wait_for(lambda: events.of(What.JOB_LATE))
    assert sorted(Ledger.objects.values_list("marker", flat=True)) == ["a first", "a last"]
    assert outcomes(job) == ["timeout", "success"]


def test_an_abandoned_mutation_commits_nothing_though_its_connection_was_not_cut(make_driver: Any, jobs, events):
    """The fence alone is enough; the cut only makes it quicker. On SQLite nobody could write without the cut."""
    bodies.gates["g"] = threading.Event()
    driver = make_driver(seats=ThreadSeats(2), threads=2)
    job = bodies.write_and_wait.enqueue("g", "a")
    driver.tick()
    wait_for(lambda: "at g" in bodies.seen)
    (held,) = driver._held.all()
    assert held.abandon()
    bodies.gates["g"].set()
    wait_for(lambda: events.of(What.JOB_LATE))
    driver._held.drop(held)
    assert Ledger.objects.count() == 0
    job.refresh_from_db()
    assert (job.state, outcomes(job)) == ("in_progress", [])


def test_an_interrupted_mutation_leaves_nothing(make_driver: Any, jobs):
    driver = make_driver(seats=ThreadSeats(1), threads=1)
    job = bodies.write_and_spin.enqueue("a")
    driver.tick()
    wait_for(lambda: "spins" in bodies.seen)
    (held,) = driver._held.all()
    # What a heartbeat does that learns of a cancel; on SQLite none can be asked for while the mutation writes.
    held.tell_canceled()
    wait_for(lambda: driver.in_flight == 0)
    job.refresh_from_db()
    assert (job.state, outcomes(job), Ledger.objects.count()) == ("canceled", ["canceled"], 0)
    assert Job.objects.count() == 1


class Worker(threading.Thread):
    """A thread with a connection of its own, which others may cut."""

    def __init__(self, work: Callable[[Worker], None]) -> None:
        super().__init__()
        self.work = work
        self.begins, self.may_go_on = threading.Event(), threading.Event()
        self.cut: Callable[[], object] = bool
        self.error: BaseException | None = None

    def run(self) -> None:
        connection.ensure_connection()
        try:
            with cuttable("default") as self.cut:
                self.work(self)
        except DatabaseError as error:
            self.error = error
        finally:
            connections.drop_all()

    def begin(self) -> None:
        self.start()
        assert self.begins.wait(60)

    def end(self) -> None:
        self.may_go_on.set()
        self.join(60)
        assert not self.is_alive()


@pytest.mark.parametrize("writes_again", [True, False])
def test_a_connection_that_was_cut_has_undone_its_transaction_and_writes_nothing_more(writes_again: bool):
    def work(worker: Worker) -> None:
        with transaction.atomic():
            bodies.write_row("a")
            worker.begins.set()
            assert worker.may_go_on.wait(60)
            if writes_again:
                bodies.write_row("b")

    worker = Worker(work)
    worker.begin()
    worker.cut()
    # At once: on SQLite the only write lock is free again.
    bodies.write_row("other")
    worker.end()
    assert worker.error is not None or not writes_again
    assert [row.marker for row in Ledger.objects.all()] == ["other"]


LONG_QUERIES = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(600)",
    "mysql": "SELECT SLEEP(600)",
}


def test_a_call_that_waits_for_the_database_returns_with_an_error_when_its_connection_is_cut():
    def work(worker: Worker) -> None:
        with connection.cursor() as cursor:
            worker.begins.set()
            cursor.execute(LONG_QUERIES[connection.vendor])
            cursor.fetchall()

    worker = Worker(work)
    worker.begin()
    worker.cut()
    worker.end()
    assert worker.error is not None


def test_to_cut_a_connection_that_was_never_opened_does_nothing():
    connections.drop_all()
    with cuttable("default") as cut:
        cut()
    bodies.write_row("a")
    assert Ledger.objects.count() == 1
