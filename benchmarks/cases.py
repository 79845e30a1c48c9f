"""What is measured. A case takes a fresh run of one peer and returns figures; the runner does the rest."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks import watching
from benchmarks.counter import Counter
from benchmarks.figures import percentile

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers import Peer
    from benchmarks.stage import Run

    Figures = dict[str, float]

WARM = 0.1  # of the jobs: run before the time is taken, so that no start-up is in it
SLACK = 30.0  # seconds beyond the expected before a run is called stuck


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much of everything; the quick ones only prove that it works."""

    seconds: float = 5.0  # how long an execution run should last
    enqueued: int = 2000
    enqueued_in_bulk: int = 20_000
    pickups: int = 200
    pickup_wait: float = 0.15
    busy_pickups: int = 3000
    idle_seconds: float = 30.0
    settle_seconds: float = 5.0
    remembered: int = 100_000
    piled: int = 1_000_000


QUICK = Sizes(
    seconds=0.05,
    enqueued=20,
    enqueued_in_bulk=200,
    pickups=5,
    pickup_wait=0.1,
    busy_pickups=60,
    idle_seconds=2.0,
    settle_seconds=1.0,
    remembered=200,
    piled=1000,
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One thing to measure; ``best`` is the figure that tables compare and charts draw."""

    name: str
    title: str
    best: str
    unit: str
    measure: Callable[[Run, Sizes], Figures]
    seats: int = 1
    lower_is_better: bool = False
    ours_alone: bool = False

    def applies(self, peer: Peer, database: str) -> bool:
        """Tell whether the peer can be asked this on this database."""
        if database not in peer.databases or self.name in peer.leaves_out:
            return False
        if self.ours_alone and peer.name != "django-helisched":
            return False
        able = _CAN.get(self.name)
        return able is None or able(peer)


_CAN: dict[str, Callable[[Peer], bool]] = {
    "enqueue-transaction": lambda peer: peer.joins_transaction,
    "enqueue-bulk": lambda peer: peer.has_bulk,
    "pause-async": lambda peer: peer.has_async,
    "finished": lambda peer: bool(peer.finished),
    "future": lambda peer: bool(peer.future),
}


def enqueue(run: Run, sizes: Sizes, *, how: str) -> Figures:
    """Store jobs while nobody takes any."""
    count = sizes.enqueued_in_bulk if how == "bulk" else sizes.enqueued
    seconds = run.ask("enqueue", task="noop", count=count, how=how)["seconds"]
    return {"jobs/s": count / seconds}


def execute(
    run: Run, sizes: Sizes, *, task: str, processes: int = 1, asynchronous: bool = False, pace: int | None = None
) -> Figures:
    """Run a backlog: from a tenth of it until nothing is unsettled any more."""
    # A whole number of rounds through every seat at the least.
    count = max(20, int(sizes.seconds * min(run.peer.pace, pace or run.peer.pace)) * processes)
    run.ask("fill", task=task, count=count)
    pids = run.start_workers(processes, asynchronous=asynchronous)
    return _rate(run, count, sizes, pids)


def _rate(run: Run, count: int, sizes: Sizes, pids: list[int]) -> Figures:
    patience = SLACK + 20 * sizes.seconds
    begun = watching.wait_for_marks(run.marks, max(1, int(count * WARM)), patience)
    used = watching.processor_seconds(_everybody(pids))
    watching.wait_for_marks(run.marks, count, patience)
    used = watching.processor_seconds(_everybody(pids)) - used
    ended = run.ask("wait_until_settled", seconds=patience)
    if ended["left"]:
        raise watching.Stuck(f"{ended['left']} jobs ran and were not settled")
    # A quick session may see all of them at the first look.
    done, seconds = max(1, count - begun.count), ended["at"] - begun.at
    return {"jobs/s": done / seconds, "CPU us/job": used / done * 1e6}


def pile(run: Run, sizes: Sizes, *, kind: str) -> Figures:
    """Run a backlog in a table with a million other rows, of one kind."""
    run.ask("fill", task="noop", count=1)
    run.ask("pile", kind=kind, count=sizes.piled)
    # Peers that scan take a tenth of a second for each claim.
    count = max(20, int(sizes.seconds * min(run.peer.pace, 2000) / 10))
    run.ask("fill", task="noop", count=count)
    return _piled_rate(run, count, sizes)


def _piled_rate(run: Run, count: int, sizes: Sizes) -> Figures:
    run.start_workers()
    patience = SLACK + count / 3
    begun = watching.wait_for_marks(run.marks, max(1, int(count * WARM)), patience)
    ended = watching.wait_for_marks(run.marks, count, patience)
    return {"jobs/s": max(1, ended.count - begun.count) / max(watching.LOOK, ended.at - begun.at)}


def pick_up(run: Run, sizes: Sizes, *, busy: bool = False) -> Figures:
    """Store one job after the other, and see when each begins in a worker that has nothing else to do."""
    run.start_workers()
    run.ask("fill", task="noop", count=1)
    watching.wait_for_marks(run.marks, 1, SLACK)
    threading.Event().wait(sizes.settle_seconds)
    run.marks.write_bytes(b"")
    count = sizes.busy_pickups if busy else sizes.pickups
    wait = 1 / 300 if busy else sizes.pickup_wait
    calls = run.ask("send", count=count, wait=wait)["calls"]
    began = _stamps(run, count)
    # From the call: what a user waits for. From its return: the share of it that is not the commit's.
    from_call = [(began[number] - call) / 1e6 for number, (call, _) in enumerate(calls)]
    from_return = [(began[number] - back) / 1e6 for number, (_, back) in enumerate(calls)]
    return {
        "p50 ms": percentile(from_call, 0.5),
        "p99 ms": percentile(from_call, 0.99),
        "p50 ms after the commit": percentile(from_return, 0.5),
        "p99 ms after the commit": percentile(from_return, 0.99),
    }


def _stamps(run: Run, count: int) -> dict[int, int]:
    never, end = threading.Event(), time.monotonic() + SLACK
    while True:
        lines = run.marks.read_text().replace(".", "").splitlines()
        found = {int(number): int(at) for number, at in (line.split() for line in lines if " " in line)}
        if len(found) == count:
            return found
        if time.monotonic() > end:
            raise watching.Stuck(f"{len(found)} of {count} jobs were picked up")
        never.wait(0.05)


def idle(run: Run, sizes: Sizes) -> Figures:
    """Leave a worker alone and see what it uses."""
    counter = None
    if run.stage.database == "postgres":
        prefix = "HELISCHED_TEST_POSTGRES_"
        place = os.environ.get(prefix + "HOST", "127.0.0.1"), int(os.environ.get(prefix + "PORT", "5432"))
        counter = Counter(*place)
    try:
        pids = run.start_workers(port=counter.port if counter else None)
        run.ask("fill", task="noop", count=1)
        watching.wait_for_marks(run.marks, 1, SLACK)
        never = threading.Event()
        never.wait(sizes.settle_seconds)
        used, sent = watching.processor_seconds(_everybody(pids)), counter.count if counter else 0
        never.wait(sizes.idle_seconds)
        used = watching.processor_seconds(_everybody(pids)) - used
        figures = {
            "% of a core": 100 * used / sizes.idle_seconds,
            "MB": watching.megabytes(_everybody(pids)),
        }
        if counter:
            figures["statements/s"] = (counter.count - sent) / sizes.idle_seconds
        return figures
    finally:
        if counter:
            counter.close()


def remember(run: Run, sizes: Sizes) -> Figures:
    """Run many jobs and see whether the worker's memory grows."""
    # The slow ones would take an hour.
    count = min(sizes.remembered, 30 * run.peer.pace) if sizes.remembered > 1000 else sizes.remembered
    run.ask("fill", task="noop", count=count)
    pids = run.start_workers()
    watching.wait_for_marks(run.marks, count // 5, SLACK + 60)
    early = watching.megabytes(_everybody(pids))
    watching.wait_for_marks(run.marks, count, SLACK + 300)
    late = watching.megabytes(_everybody(pids))
    return {"MB": late, "MB after a fifth": early, "jobs": float(count)}


def start(run: Run, sizes: Sizes) -> Figures:
    """Start a worker with one job waiting, and see when the body begins."""
    run.ask("fill", task="noop", count=1)
    begun = time.monotonic()
    run.start_workers()
    return {"seconds": watching.wait_for_marks(run.marks, 1, SLACK).at - begun}


def grow(run: Run, sizes: Sizes) -> Figures:
    """Measure claims among millions of rows that do not concern them."""
    answer: dict[str, Any] = run.ask("growth", piled=sizes.piled)
    return {name: float(value) for name, value in answer.items()}


def _everybody(pids: list[int]) -> list[int]:
    return [process for pid in pids for process in watching.family(pid)]


def _enqueue(how: str, title: str) -> Case:
    return Case(name=f"enqueue-{how}", title=title, best="jobs/s", unit="jobs/s", measure=partial(enqueue, how=how))


def _execute(name: str, title: str, *, task: str = "noop", seats: int = 1, **given: Any) -> Case:
    measure = partial(execute, task=task, **given)
    return Case(name=name, title=title, best="jobs/s", unit="jobs/s", measure=measure, seats=seats)


CASES = (
    _enqueue("autocommit", "enqueue, each in a transaction of its own"),
    _enqueue("transaction", "enqueue, many in the caller's transaction"),
    _enqueue("bulk", "enqueue in bulk, 1,000 at a time"),
    _execute("noop", "empty jobs, one process, one at a time"),
    _execute("noop-8", "empty jobs, one process, eight at a time", seats=8),
    _execute("noop-2p", "empty jobs, two processes", processes=2),
    _execute("write", "jobs that write one row, one process", task="write", pace=3000),
    _execute("write-16", "jobs that write one row, sixteen at a time", task="write", seats=16, pace=3000),
    _execute("pause-4", "jobs of 1 ms, four at a time", task="pause", seats=4, pace=3000),
    _execute("pause-async", "async jobs of 1 ms, 100 at a time", task="pause_async", seats=100, asynchronous=True),
    Case(name="pickup", title="pickup, idle", best="p50 ms", unit="ms", measure=pick_up, lower_is_better=True),
    Case(
        name="pickup-busy",
        title="pickup at 300 jobs/s",
        best="p99 ms",
        unit="ms",
        measure=partial(pick_up, busy=True),
        lower_is_better=True,
        ours_alone=True,
    ),
    Case(name="idle", title="idle", best="% of a core", unit="% of a core", measure=idle, lower_is_better=True),
    Case(name="memory", title="memory", best="MB", unit="MB", measure=remember, lower_is_better=True),
    Case(name="start", title="start to first body", best="seconds", unit="s", measure=start, lower_is_better=True),
)

GROWTH = (
    Case(
        name="growth",
        title="one claim among rows that do not concern it",
        best="empty",
        unit="ms",
        measure=grow,
        lower_is_better=True,
        ours_alone=True,
    ),
    Case(
        name="finished",
        title="empty jobs, among finished ones",
        best="jobs/s",
        unit="jobs/s",
        measure=partial(pile, kind="finished"),
    ),
    Case(
        name="future",
        title="empty jobs, among ones that are due in a year",
        best="jobs/s",
        unit="jobs/s",
        measure=partial(pile, kind="future"),
    ),
)
