"""What one process could do on this database, and what holds it back."""

from __future__ import annotations

from contextlib import contextmanager
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction

from django_helisched import conf
from django_helisched.exceptions import InvalidOption
from django_helisched.inspection.answer import Answer, table
from django_helisched.inspection.bench_limits import Cost, Probe, shares
from django_helisched.inspection.bench_rows import BenchRows
from django_helisched.stores.orm import prepare_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEAST, MOST = 64, 100_000  # jobs: fewer say nothing, more are a load test
_LOOKS = 200  # statements that ask for nothing, for the round trip
_COMMITS = 50  # for the commit, each with one row


def bench(*, jobs: int = 1000) -> Answer:
    """Store, claim and end rows in each of the ways there are, delete them, and return the figures.

    Raises InvalidOption for a number of ``jobs`` out of its bounds.
    """
    if not LEAST <= jobs <= MOST:
        raise InvalidOption(f"--jobs {jobs} must be {LEAST} to {MOST}.")
    alias = conf.get_settings().database
    prepare_process(alias)
    rows = BenchRows(alias)
    try:
        probe = _probe(alias, rows)
        costs = [_cost(alias, name, jobs, work) for name, work in _ways(alias, rows, jobs)]
    finally:
        deleted = rows.delete()
    return _answer(alias, probe, costs, deleted)


def _probe(alias: str, rows: BenchRows) -> Probe:
    connection = connections[alias]
    with connection.cursor() as cursor:
        looks = []
        for _ in range(_LOOKS):
            begun = perf_counter()
            cursor.execute("SELECT 1")
            cursor.fetchone()
            looks.append(perf_counter() - begun)
    alone = _medians(rows)
    with transaction.atomic(using=alias):
        together = _medians(rows)
    return Probe(round_trip=median(looks), commit=max(0.0, alone - together))


def _medians(rows: BenchRows) -> float:
    took = []
    for _ in range(_COMMITS):
        begun = perf_counter()
        rows.store(1)
        took.append(perf_counter() - begun)
    return median(took)


def _ways(alias: str, rows: BenchRows, jobs: int) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield what is measured; each returns how many transactions it has committed."""

    def one_by_one() -> int:
        return sum(rows.store(1) for _ in range(jobs))

    def together() -> int:
        with transaction.atomic(using=alias):
            one_by_one()
        return 1

    yield "enqueue, each in a transaction of its own", one_by_one
    yield "enqueue, all in one transaction", together
    yield "enqueue, 1,000 at once", lambda: rows.store(jobs)
    yield "actions, claimed and ended 64 at a time", lambda: rows.run_actions(jobs)
    yield "mutations, each ended in its own transaction", lambda: rows.run_mutations(jobs)


def _cost(alias: str, name: str, jobs: int, work: Callable[[], int]) -> Cost:
    with _counted(alias) as statements:
        wall, cpu = perf_counter(), process_time()
        commits = work()
        wall, cpu = perf_counter() - wall, process_time() - cpu
    return Cost(name, jobs, wall=wall, cpu=cpu, statements=len(statements), commits=commits)


@contextmanager
def _counted(alias: str) -> Iterator[list[None]]:
    statements: list[None] = []

    def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
        statements.append(None)
        return execute(sql, params, many, context)

    with connections[alias].execute_wrapper(count):
        yield statements


def _answer(alias: str, probe: Probe, costs: list[Cost], deleted: int) -> Answer:
    connection = connections[alias]
    name = f"{connection.display_name} ({alias})"
    trip, commit = (f"{1000 * seconds:.2f} ms" for seconds in (probe.round_trip, probe.commit))
    head = f"{name}: one statement there and back {trip}, one commit {commit}."
    rows = []
    for cost in costs:
        most, share = next(iter(shares(cost, probe).items()))
        rows.append([cost.name, f"{cost.rate:,.0f}", f"{most} ({share:.0%} of the time)"])
    note = (
        f"One connection, empty bodies. {deleted:,} jobs were stored for it, out of reach of schedulers, and deleted."
    )
    data = {
        "database": connection.vendor,
        "round_trip_ms": round(1000 * probe.round_trip, 3),
        "commit_ms": round(1000 * probe.commit, 3),
        "rows": deleted,
        "figures": [
            {"name": cost.name, "jobs_per_second": round(cost.rate), "shares": _rounded(shares(cost, probe))}
            for cost in costs
        ],
    }
    return Answer(data, [head, "", *table(["", "jobs/s", "limited by"], rows), "", note])


def _rounded(found: dict[str, float]) -> dict[str, float]:
    return {name: round(share, 2) for name, share in found.items()}
