"""The side of the runner that lives in a peer's environment: orders come as lines of JSON, answers go out so.

python -m benchmarks.child < orders > answers
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from contextlib import nullcontext
from importlib import metadata
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings

from benchmarks.peers import this_peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers import Peer

BULK = 1000  # jobs of one bulk call


class Child:
    """Carries out orders by the peer's own calls. The connection opens with the first that needs it."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    def create(self) -> dict[str, Any]:
        """Make the database anew, and the peer's tables in it."""
        from benchmarks import databases

        databases.drop(settings.DATABASES["default"])
        databases.create(settings.DATABASES["default"])
        self.peer.prepare()
        return {}

    def copy(self, template: str) -> dict[str, Any]:
        """Make the database anew as a copy of one that has the tables."""
        from benchmarks import databases

        if not databases.copy(settings.DATABASES["default"], template):
            return self.create()
        return {}

    def drop(self) -> dict[str, Any]:
        """Remove the database."""
        from benchmarks import databases

        databases.drop(settings.DATABASES["default"])
        return {}

    def enqueue(self, task: str, count: int, how: str) -> dict[str, Any]:
        """Store jobs one by one, one by one in a transaction, or in bulk; return the seconds that took."""
        self.peer.enqueue(_task("noop"), 0)  # connections and caches are not what is measured
        begun = time.perf_counter()
        self._store(_task(task), count, how)
        seconds = time.perf_counter() - begun
        self._check(count + 1)
        return {"seconds": seconds}

    def fill(self, task: str, count: int) -> dict[str, Any]:
        """Store a backlog the quickest way there is."""
        how = "bulk" if self.peer.has_bulk else "transaction" if self.peer.joins_transaction else "autocommit"
        self._store(_task(task), count, how)
        self._settle_down()
        return {}

    def _store(self, task: Any, count: int, how: str) -> None:
        if how == "bulk":
            for start in range(0, count, BULK):
                self.peer.enqueue_many(task, range(start, min(start + BULK, count)))
            return
        with self.peer.transaction() if how == "transaction" else nullcontext():
            for number in range(count):
                self.peer.enqueue(task, number)

    def _check(self, count: int) -> None:
        found = self.peer.unfinished()
        if found != count:
            raise AssertionError(f"{found} of {count} jobs were stored")

    def pile(self, kind: str, count: int) -> dict[str, Any]:
        """Copy one stored job so many times, as finished or as due in a year."""
        from benchmarks import filling

        changes = self.peer.finished if kind == "finished" else self.peer.future
        filling.clone(self.peer.table, count, changes)
        self._settle_down()
        return {}

    def send(self, count: int, wait: float) -> dict[str, Any]:
        """Store stamping jobs, ``wait`` seconds apart on average; return when each call began and ended, in ns."""
        call, never = _task("stamp"), threading.Event()
        self.peer.enqueue(_task("noop"), 0)
        never.wait(0.5)
        rng, calls = random.Random(7), []
        due = time.monotonic()
        for number in range(count):
            # Never in step with anybody's polling.
            due += wait * rng.uniform(0.5, 1.5)
            never.wait(max(0.0, due - time.monotonic()))
            begun = time.monotonic_ns()
            self.peer.enqueue(call, number)
            calls.append((begun, time.monotonic_ns()))
        return {"calls": calls}

    def wait_until_settled(self, seconds: float) -> dict[str, Any]:
        """Return the instant at which nothing is unfinished any more, or how many are when the time is over."""
        never, end = threading.Event(), time.monotonic() + seconds
        while left := self.peer.unfinished():
            if time.monotonic() > end:
                return {"left": left}
            never.wait(0.002)
        return {"left": 0, "at": time.monotonic()}

    def facts(self) -> dict[str, Any]:
        """Return the versions of everything, and how durable the database is."""
        from benchmarks import databases

        found = {"python": sys.version.split()[0], "django": django.get_version(), **databases.facts()}
        if self.peer.requirements:
            found["peer"] = metadata.version(self.peer.name)
        return found

    def growth(self, **sizes: int) -> dict[str, Any]:
        """Measure claims among rows that do not concern them: see benchmarks/growth.py."""
        from benchmarks import growth

        return growth.measure(**sizes)

    def _settle_down(self) -> None:
        from benchmarks import databases

        databases.settle_down()


def _task(name: str) -> Any:
    from benchmarks.app import tasks

    return getattr(tasks, name)


def main() -> None:
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    django.setup()
    child = Child(this_peer())
    for line in sys.stdin:
        order = json.loads(line)
        verb: Callable[..., dict[str, Any]] = getattr(child, order.pop("do"))
        try:
            answer = verb(**order)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
