"""What a look for jobs reads does not grow with the jobs that wait, whatever for."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched.stores.base import DeclaredLimits
from django_helisched.stores.orm import OrmJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START
from django_helisched.testing.contract.factories import new_job

if TYPE_CHECKING:
    from collections.abc import Callable

FEW, MANY = 300, 3000
LIMITS = DeclaredLimits(capacity_of=lambda _: 2, since=START)
ONLY_POSTGRESQL = pytest.mark.only_on("postgresql", why="a planner that can be told what to do")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def store() -> OrmJobStore:
    return OrmJobStore("default", ManualClock(START))


def look(store: OrmJobStore) -> None:
    """Look for jobs as a driver does that has nothing to claim."""
    assert store.admit(limits=LIMITS) == 0
    store.next_due_at()


def fill(store: OrmJobStore, number: int) -> None:
    """Store so many jobs of one key that are due, of that key that are not, and of no key that are not."""
    later = START + timedelta(hours=1)
    kinds = [{"limit_key": "k"}, {"limit_key": "k", "due_at": later, "priority": 5}, {"due_at": later}]
    for given in kinds:
        for start in range(0, number, 500):
            store.enqueue([new_job(store, **given) for _ in range(min(500, number - start))])  # type: ignore[arg-type]


def effort(work: Callable[[], None]) -> int:
    """Return how much the database did for ``work``, in a measure of its own that no other load changes."""
    if connection.vendor == "sqlite":
        return _steps(work)
    return _pages(work) if connection.vendor == "postgresql" else _rows(work)


def _steps(work: Callable[[], None]) -> int:
    connection.ensure_connection()
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    connection.connection.set_progress_handler(count, 10)
    try:
        work()
    finally:
        connection.connection.set_progress_handler(None, 0)
    return steps[0]


def _pages(work: Callable[[], None]) -> int:
    with CaptureQueriesContext(connection) as queries:
        work()
    pages = 0
    with connection.cursor() as cursor:
        for query in queries.captured_queries:
            cursor.execute("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) " + query["sql"])
            plan = [line for (line,) in cursor.fetchall()]
            pages += sum(map(int, re.findall(r"(?:hit|read)=(\d+)", next(line for line in plan if "Buffers" in line))))
    return pages


def _rows(work: Callable[[], None]) -> int:
    before = _handled()
    work()
    return _handled() - before


def _handled() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(value) for _, value in cursor.fetchall())


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def refresh() -> None:
    """Let the planner know what is there, as a server does by itself."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE TABLE helisched_job" if connection.vendor == "mysql" else "ANALYZE")
        if connection.vendor == "mysql":
            cursor.fetchall()


def test_a_look_reads_the_same_however_many_jobs_wait(store: OrmJobStore):
    fill(store, FEW)
    assert store.admit(limits=LIMITS) == 2
    refresh()
    look(store)
    few = effort(lambda: look(store))
    fill(store, MANY - FEW)
    refresh()
    look(store)
    assert effort(lambda: look(store)) <= 2 * few


@pytest.mark.parametrize("plan", ["as ever", pytest.param("another order", marks=ONLY_POSTGRESQL)])
def test_a_key_is_found_behind_many_that_are_full(store: OrmJobStore, plan: str, request: pytest.FixtureRequest):
    """However many keys there are, every look goes on where the one before has ended, however the rows are joined."""
    if plan != "as ever":
        # As a planner may do by itself once it knows of a few hundred keys.
        execute("SET enable_seqscan = off")
        request.addfinalizer(lambda: execute("RESET enable_seqscan"))
    for start in range(0, 1000, 500):
        store.enqueue(
            [new_job(store, limit_key=f"k{number:04}") for number in range(start, start + 500) for _ in "abc"]
        )
    looks = [store.admit(limits=LIMITS) for _ in range(30)]
    assert sum(looks) == 2000
    assert looks[-1] == 0
