"""Say how soon a job begins that another process enqueues, or that is due at an instant, and how soon it is stopped.

    python benchmarks/pickup.py [--jobs 200] [--timers 50] [--cancels 50]

Runs on the database that tests.settings selects (HELISCHED_TEST_DB), in a
database of its own that is removed afterwards. This process enqueues, at random
moments; one `runscheduler` with default settings runs the jobs, which tell by a
datagram when they began. Server and scheduler share this machine's clock.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parents[1]
PATIENCE = 60.0  # seconds for one answer
SETTLE = 3.0  # seconds of a start that are not idling
LONGEST_GAP = 0.4  # seconds between two enqueues

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
sys.path.insert(0, str(ROOT))


class Bench:
    """Jobs on the database of the settings, and the socket on which they answer."""

    def __init__(self, room: Path) -> None:
        self._path = str(room / "answers")
        self._answers = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._answers.bind(self._path)
        self._answers.settimeout(PATIENCE)
        self._never = threading.Event()

    def pickup(self, wait: Callable[[], float]) -> float:
        """Return the seconds from the commit of an enqueue to the first line of the body."""
        from tests.app import jobs as bodies  # the settings come first

        self._never.wait(wait())
        bodies.stamp.enqueue(self._path)
        stored_at = time.monotonic()
        return self._answer()[0] - stored_at

    def timer(self) -> float:
        """Return how many seconds after its instant a job began that was due soon."""
        from tests.app import jobs as bodies

        job = bodies.stamp.run_after(random.uniform(0.2, 1.0), self._path)
        return self._answer()[1] - job.due_at.timestamp()

    def cancel(self) -> float:
        """Return the seconds from the commit of a cancel to the end of an async body."""
        from django_helisched import scheduler
        from tests.app import jobs as bodies

        job = bodies.stamp_when_canceled.enqueue(self._path)
        self._answer()
        self._never.wait(random.uniform(0.05, 0.2))
        scheduler.cancel(job)
        canceled_at = time.monotonic()
        return self._answer()[0] - canceled_at

    def _answer(self) -> tuple[float, float]:
        monotonic, wall = self._answers.recv(100).decode().split()
        return float(monotonic), float(wall)


def shown(name: str, seconds: Sequence[float]) -> str:
    """Return the percentiles as a line."""
    ordered = sorted(seconds)
    at = {share: ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 for share in (0.9, 0.99)}
    median = statistics.median(ordered) * 1000
    return f"{name}: median {median:.1f} ms, 90 % {at[0.9]:.1f}, 99 % {at[0.99]:.1f}, most {ordered[-1] * 1000:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--timers", type=int, default=50)
    parser.add_argument("--cancels", type=int, default=50)
    given = parser.parse_args()

    import django  # the settings come first
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    made = setup_databases(verbosity=0, interactive=False)
    environment = {**os.environ, "HELISCHED_TEST_NAME": str(connection.settings_dict["NAME"])}
    command = [sys.executable, "-m", "django", "runscheduler", "--verbosity", "0"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        with tempfile.TemporaryDirectory() as room:
            measure(Bench(Path(room)), connection.vendor, given)
    finally:
        process.terminate()
        process.wait(timeout=30)
        connection.close()
        teardown_databases(made, verbosity=0)


def measure(bench: Bench, vendor: str, given: Any) -> None:
    """Print a line for each figure."""
    bench.pickup(lambda: 0.0)
    bench.pickup(lambda: SETTLE)
    if given.jobs:
        idle = [bench.pickup(lambda: random.uniform(0.0, LONGEST_GAP)) for _ in range(given.jobs)]
        print(shown(f"{vendor}, begun after the commit", idle))
    if given.timers:
        print(shown(f"{vendor}, begun after the instant", [bench.timer() for _ in range(given.timers)]))
    if given.cancels:
        print(shown(f"{vendor}, stopped after the cancel", [bench.cancel() for _ in range(given.cancels)]))


if __name__ == "__main__":
    main()
