"""One claim among rows that do not concern it, in milliseconds; runs in our own environment.

Claims are made by the store, as the driver makes them: 16 rows at a time of a
queue that has enough. A look is what the driver does when nothing is due.
"""

from __future__ import annotations

import time
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import databases, filling

if TYPE_CHECKING:
    from collections.abc import Callable

CLAIMS = 60
LIMIT = 16
LEASE = timedelta(hours=1)
PRIORITIES = (-20, -10, 0, 10, 20)
TABLE = "helisched_job"
CLONE = {"name": "'clone'"}  # what tells the copies from the row they are of
FINISHED = {"state": "'success'", "completed_at": "one.created_at", "fence": "1", "attempt_count": "1"}
FUTURE = {"next_run_at": "{in_a_year}", "due_at": "{in_a_year}"}


def measure(*, piled: int, held: int, queues: int = 200) -> dict[str, float]:
    """Return the median milliseconds of a claim and of a look, for each kind of rows around."""
    kinds: dict[str, Callable[[], None]] = {
        "empty": lambda: None,
        "finished": lambda: _pile(piled, FINISHED),
        "future": lambda: _pile_future(piled),
        "paused": lambda: _pile_paused(piled),
        "held": lambda: _pile_held(held),
        "all of it": lambda: _pile_all(piled, held),
        f"{queues} queues of {len(PRIORITIES)} priorities": lambda: _pile_heads(queues, FUTURE),
        f"{queues} queues of {len(PRIORITIES)} priorities, all due": lambda: _pile_heads(queues, {}),
    }
    found = {}
    for name, pile in kinds.items():
        _empty_tables()
        _store_due(1)
        pile()
        _store_due(CLAIMS * LIMIT)
        databases.settle_down()
        found[name] = _claim_time()
        found[f"{name}, a look"] = _look_time()
    return found


def _claim_time() -> float:
    from django_helisched import wiring

    store, took = wiring.job_store(), []
    for turn in range(CLAIMS):
        begun = time.perf_counter()
        claimed = store.claim(worker_id="growth", limit=LIMIT, lease=LEASE, turn=turn)
        took.append(1000 * (time.perf_counter() - begun))
        if len(claimed) != LIMIT:
            raise AssertionError(f"a claim took {len(claimed)} of {LIMIT} due rows")
    return median(took)


def _look_time() -> float:
    from django_helisched import wiring

    store, took = wiring.job_store(), []
    while store.claim(worker_id="growth", limit=64, lease=LEASE):
        pass
    for turn in range(CLAIMS):
        begun = time.perf_counter()
        store.claim(worker_id="growth", limit=LIMIT, lease=LEASE, turn=turn)
        store.next_due_at()
        took.append(1000 * (time.perf_counter() - begun))
    return median(took)


def _store_due(count: int) -> None:
    from benchmarks.app.tasks import noop
    from django_helisched import scheduler

    for start in range(0, count, 1000):
        scheduler.enqueue_many([(noop, [number]) for number in range(start, min(start + 1000, count))])


def _pile(count: int, changes: dict[str, str]) -> None:
    filling.clone(TABLE, count, changes | CLONE, which="name = ''")


def _pile_future(count: int) -> None:
    for priority in PRIORITIES:
        _pile(count // len(PRIORITIES), FUTURE | {"priority": str(priority)})


def _pile_paused(count: int) -> None:
    from django_helisched import wiring

    wiring.job_store().pause_queue("paused", by="growth")
    _pile(count, {"queue": "'paused'"})


def _pile_held(count: int) -> None:
    held_at = {"held_at": "one.created_at"}
    _pile(count // 2, held_at | {"hold": "'unknown_function'", "fn_path": "'nobody.knows'"})
    _pile(count // 2, held_at | {"hold": "'limit'", "limit_key": "'full'"})


def _pile_all(piled: int, held: int) -> None:
    _pile(piled, FINISHED)
    _pile_future(piled)
    _pile_paused(piled)
    _pile_held(held)


def _pile_heads(queues: int, changes: dict[str, str]) -> None:
    for priority in PRIORITIES:
        queue = {
            "postgresql": "'queue ' || series.n",
            "sqlite": "'queue ' || series.n",
            "mysql": "concat('queue ', series.n)",
        }[databases.vendor()]
        _pile(queues, changes | {"priority": str(priority), "queue": queue})


def _empty_tables() -> None:
    from django_helisched.models import Job, JobArgs, Queue

    for model in (JobArgs, Job, Queue):
        databases.empty(model._meta.db_table)
