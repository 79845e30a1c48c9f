"""What the hot statements read, in tables with twenty thousand rows that do not concern them.

The statements are those that the stores send at this moment. A lost index, a
sort or a scan shows as rows that were looked at.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from django_helisched import scheduler, wiring
from django_helisched.driver.waking.notify import ONE_PLAN
from django_helisched.jobs.job import State
from django_helisched.jobs.outcome import AttemptOutcome, Outcome
from django_helisched.models import Cron, Job
from django_helisched.stores.base import CLAIM_LIMIT, Settlement
from tests.plans.conftest import CRONS, DUE_CRONS, EXPIRED, HELD, HELD_AT, JOBS, LAPSED, LEASED, copy
from tests.plans.explaining import explained, explained_for_any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.plans.explaining import Plan

pytestmark = pytest.mark.usefixtures("rows")

HOT = "helisched_job_hot"
LEASE = timedelta(seconds=30)
# Rows that are known by their ids: what the databases call the primary key's own index, and the one that ends on it.
BY_ID = {"helisched_job_pkey", "PRIMARY", "sqlite_autoindex_helisched_job_1", "helisched_job_state"}
BY_KEY = {"helisched_job_key", "sqlite_autoindex_helisched_job_2"}
RETRIED = Outcome(state=State.PENDING, attempt=AttemptOutcome.LOST, retry_in=timedelta(0), losses=1)
# A few rows for each head or for each row that is wanted, far from the twenty thousand that there are.
FEW = 150
# A write looks into every index of the table, once for each row.
WRITTEN = 600


def test_next_due_at_reads_the_hot_index_once_for_each_head():
    store = wiring.job_store()
    store.next_due_at()  # MySQL asks first for the heads that it saw last, which were another test's
    with explained() as plans:
        assert store.next_due_at() is not None
    assert_reads(plans, JOBS, {HOT})
    assert looked_at(plans) < FEW


@pytest.mark.parametrize("turn", [0, 7], ids=["by priority", "by age"])
def test_claim_walks_the_hot_index_and_reads_what_it_takes(turn):
    store = wiring.job_store()
    store.next_due_at()
    with explained() as plans:
        claims = store.claim(worker_id="me", limit=16, lease=LEASE, turn=turn)
    assert len(claims) == 16
    assert HOT in indexes(plans, JOBS)
    assert_reads(plans, JOBS, {HOT, *BY_ID})
    others = [plan for plan in plans if "UPDATE" not in plan.sql]
    # PostgreSQL lists, takes and reads by one statement, unless a claim before was slow.
    assert others or connection.vendor == "postgresql"
    assert all(plan.rows < FEW for plan in others)
    assert looked_at(plans) < WRITTEN


@pytest.mark.only_on("postgresql", why="nothing else keeps plans")
@pytest.mark.parametrize("queues", [0, 5])
@pytest.mark.parametrize("limit", [1, 16])
def test_a_claim_that_is_planned_for_any_values_walks_the_hot_index_too(limit, queues):
    from tests.app.jobs import tell

    for number in range(queues):
        tell.using(queue=f"queue {number}").enqueue(number)
    plans: list[Plan] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("WITH"):
            plans.append(explained_for_any(sql, params, ONE_PLAN))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        assert len(wiring.job_store().claim(worker_id="me", limit=limit, lease=LEASE)) == limit
    assert HOT in indexes(plans, JOBS)
    assert_reads(plans, JOBS, {HOT, *BY_ID})
    assert looked_at(plans) < WRITTEN


@pytest.mark.parametrize("turn", [0, 7], ids=["by priority", "by age"])
def test_claim_from_many_heads_takes_few_statements(turn):
    from tests.app.jobs import tell

    store = wiring.job_store()
    for number in range(60):
        for priority in (1, 2):
            tell.using(queue=f"queue {number:02}", priority=priority).enqueue(number)
    store.next_due_at()
    with explained() as plans:
        claims = store.claim(worker_id="me", limit=16, lease=LEASE, turn=turn)
    assert len(claims) == 16
    selects = [plan for plan in plans if "helisched_job" in plan.sql]
    # The heads, the candidates by age, one for all heads, the arguments. SQLite takes its lock, reads jobs with their
    # arguments, and updates; MySQL locks head by head in one transaction.
    assert len(selects) <= {"sqlite": 5, "mysql": 20}.get(connection.vendor, 4)
    assert_reads(plans, JOBS, {HOT, *BY_ID})
    assert looked_at(plans[:1]) < 122 * 12
    assert looked_at(plans[1:]) < max(122 * 12, WRITTEN)


def test_claim_by_age_fetches_no_more_than_it_takes():
    from tests.app.jobs import tell

    store = wiring.job_store()
    scheduler.enqueue_many([(tell.using(queue=f"queue {number % 10}"), [number]) for number in range(300)])
    fetched: list[int] = []

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if "part UNION ALL" in sql and "UPDATE" not in sql:
            fetched.append(len(context["cursor"].fetchall()))
            return execute(sql, params, many, context)
        return result

    with connection.execute_wrapper(count):
        assert len(store.claim(worker_id="me", limit=16, lease=LEASE, turn=7)) == 16
    assert fetched == [16]


def test_heartbeat_finds_its_rows_by_their_ids():
    store = wiring.job_store()
    claims = store.claim(worker_id="me", limit=16, lease=LEASE)
    with explained() as plans:
        answer = store.heartbeat(claims, lease=LEASE)
    assert not answer.lost
    assert_reads(plans, JOBS, BY_ID)
    assert looked_at(plans) < WRITTEN


def test_sweep_reads_what_is_in_progress_and_takes_back_what_lapsed():
    with explained() as plans:
        answer = wiring.job_store().sweep({}, lease=LEASE, decide_loss=lambda job: RETRIED)
    assert len(answer.swept) == LAPSED
    assert_reads(plans, JOBS, BY_ID)
    # Their families, their attempts, their ends: some rows for each, and the running ones once.
    assert looked_at(plans) < WRITTEN


def test_expire_reads_what_has_expired_and_what_is_held():
    with explained() as plans:
        assert wiring.job_store().expire(unknown_grace=timedelta(days=1)) == EXPIRED
    assert_reads(plans, JOBS, {"helisched_job_expiry", HOT, *BY_ID})
    assert looked_at(plans) < FEW + HELD


def test_whether_a_sweep_has_chores_is_read_from_the_indexes_that_it_walks():
    with explained() as plans:
        assert wiring.job_store().has_chores()
    assert_reads(plans, JOBS, {"helisched_job_state", "helisched_job_expiry", HOT, "helisched_job_limit"})
    assert looked_at(plans) < FEW


@pytest.mark.parametrize("count", [16, CLAIM_LIMIT])
def test_settle_finds_its_rows_by_their_ids(count):
    store = wiring.job_store()
    claims = store.claim(worker_id="me", limit=count, lease=LEASE)
    assert len(claims) == count
    ended = Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS)
    with explained() as plans:
        answers = store.settle([Settlement(claim=claim, outcome=ended, started_at=store.now()) for claim in claims])
    assert {answer.name for answer in answers} == {"DONE"}
    assert_reads(plans, JOBS, BY_ID)
    assert looked_at(plans) < WRITTEN * count / 10


def test_enqueue_reads_no_job_but_the_one_with_the_same_key():
    from tests.app.jobs import tell

    with explained() as plans:
        tell.enqueue("one")
        tell.using(idempotency_key="the same").enqueue("two")
        tell.using(idempotency_key="the same").enqueue("three")
    assert_reads(plans, JOBS, BY_ID | BY_KEY)
    assert looked_at(plans) < FEW


def test_admit_looks_once_into_its_index_for_each_line():
    for let_out in (1, 0):
        with explained() as plans:
            assert wiring.job_store().admit() == let_out
        assert_reads(plans, JOBS, {"helisched_job_overlap", "helisched_job_limit", HOT, *BY_ID})
        assert looked_at(plans) < FEW


def test_admit_looks_into_lines_of_crons_however_long_they_are():
    crons = list(Cron.objects.order_by("name")[:3])
    Cron.objects.filter(pk__in=[cron.id for cron in crons]).update(overlap="skip")
    for number, cron in enumerate(crons):
        of_cron = {"cron_id": f"'{cron.id.hex}'"}
        copy(500, of_cron | HELD_AT | {"hold": "'overlap'", "overlap_key": f"'line {number}'"})
        copy(1, of_cron | LEASED | {"lease_expires_at": "{in_a_year}"})
    with explained() as plans:
        assert wiring.job_store().admit() == 1  # the job with a limit: the lines wait for a running job
    assert_reads(plans, JOBS, {"helisched_job_overlap", "helisched_job_limit", "helisched_job_cron", HOT, *BY_ID})
    assert looked_at(plans) < FEW


def test_withdraw_reads_what_is_out_under_limits():
    wiring.job_store().admit()
    with explained() as plans:
        assert wiring.job_store().withdraw(lambda queue: False) == 1
    # PostgreSQL takes any index for a hold that no row has.
    assert_reads(plans, JOBS, {"helisched_job_limit", "helisched_job_overlap", HOT, *BY_ID})
    assert looked_at(plans) < FEW


def test_due_crons_are_read_from_the_front_of_their_index():
    with explained() as plans:
        assert len(wiring.cron_store().due(limit=100)) == DUE_CRONS
    assert_reads(plans, CRONS, {"helisched_cron_due"})
    assert looked_at(plans) < 100


def test_the_next_due_cron_is_the_first_of_the_index():
    with explained() as plans:
        assert wiring.cron_store().next_due_at() is not None
    assert_reads(plans, CRONS, {"helisched_cron_due"})
    assert looked_at(plans) < 100


@pytest.mark.parametrize(
    ("index", "fixed", "columns"),
    [
        (HOT, "state", ["hold", "queue", "priority", "next_run_at", "id"]),
        ("helisched_job_overlap", "hold", ["overlap_key", "id"]),
    ],
)
def test_a_partial_index_is_not_led_by_what_all_its_rows_have(index, fixed, columns):
    # PostgreSQL would read it from its first row on.
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, JOBS)[index]["columns"]
    assert found == (columns if connection.features.supports_partial_indexes else [fixed, *columns])


def test_a_scan_of_the_table_is_seen():
    with explained() as plans:
        # No index begins with the name.
        assert not Job.objects.filter(name="nobody").exists()
    assert indexes(plans, JOBS) == {""}
    assert looked_at(plans) > 10 * WRITTEN


def assert_reads(plans: Sequence[Plan], table: str, allowed: set[str]) -> None:
    """Fail where a statement reads the table by another index, or scans it."""
    for plan in plans:
        read = plan.reads_of(table)
        assert read <= allowed, f"{sorted(read - allowed)} of {table}, {plan.rows} rows, by\n{plan.sql}"


def indexes(plans: Sequence[Plan], table: str) -> set[str]:
    return {index for plan in plans for index in plan.reads_of(table)}


def looked_at(plans: Sequence[Plan]) -> int:
    return max(plan.rows for plan in plans)
