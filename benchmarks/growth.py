"""One claim among rows that do not concern it, in milliseconds; runs in our own environment.

Claims are made by the store, as the driver makes them: 16 rows at a time of a
queue that has enough. A look is what the driver does when nothing is due.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING

from django.db import connection

from benchmarks import databases, filling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLAIMS = 60
LIMIT = 16
LEASE = timedelta(hours=1)
PRIORITIES = (-20, -10, 0, 10, 20)
TABLE = "helisched_job"
CLONE = {"name": "'clone'"}  # what tells the copies from the row they are of
FINISHED = {"state": "'success'", "completed_at": "one.created_at", "fence": "1", "attempt_count": "1"}
FUTURE = {"next_run_at": "{in_a_year}", "due_at": "{in_a_year}"}


def measure(*, piled: int, queues: int = 200) -> dict[str, float]:
    """Return the median milliseconds of a claim and of a look, for each kind of rows around.

    ``piled`` rows wait in each priority, five times as many have finished, a tenth is held, and a fifth of
    them ended while an old transaction was open.
    """
    finished, future, held, ended = 5 * piled, len(PRIORITIES) * piled, piled // 10, piled // 5
    heads = f"{queues} queues of {len(PRIORITIES)} priorities"
    kinds: dict[str, Callable[[], None]] = {
        "empty": lambda: None,
        f"{finished:,} finished": lambda: _pile(finished, FINISHED),
        f"{future:,} due in a year": lambda: _pile_future(future),
        f"{piled:,} due in a paused queue": lambda: _pile_paused(piled),
        f"{held:,} held": lambda: _pile_held(held),
        "all of these": lambda: _pile_all(finished, future, piled, held),
        heads: lambda: _pile_heads(queues, FUTURE),
        f"{heads}, all due": lambda: _pile_heads(queues, {}),
        f"{ended:,} ended under an open transaction": lambda: None,
    }
    found = {}
    for name, pile in kinds.items():
        _empty_tables()
        _store_due(1)
        pile()
        with _ended_unseen(ended) if "open transaction" in name else nullcontext():
            _store_due(CLAIMS * LIMIT)
            databases.settle_down()
            found[name] = _claim_time()
            found[f"{name}, a look"] = _look_time()
    return found


@contextmanager
def _ended_unseen(count: int) -> Iterator[None]:
    """Let ``count`` due rows end while a transaction is open that began before: nothing of them can be removed."""
    _pile(count, {})
    with databases.snapshot(), connection.cursor() as cursor:
        changes = ", ".join(f"{column} = {sql.replace('one.', '')}" for column, sql in FINISHED.items())
        cursor.execute(f"UPDATE {TABLE} SET {changes} WHERE state = 'pending'")
        yield


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


def _pile_all(finished: int, future: int, piled: int, held: int) -> None:
    _pile(finished, FINISHED)
    _pile_future(future)
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
