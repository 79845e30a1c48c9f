"""Say how many jobs one process runs in a second.

    python benchmarks/throughput.py [--jobs 20000] [--only noop] [--profile]

Runs on the database that tests.settings selects (HELISCHED_TEST_DB), in a
database of its own that is removed afterwards. The jobs are stored beforehand;
the clock runs from the start of the loop, in this process, until the last end
is written.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import resource
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.functions import JobFunction

BULK = 5000
DEADLINE = 300.0  # seconds


def runs() -> dict[str, tuple[JobFunction[Any, Any], dict[str, Any]]]:
    """Return what is measured: a function, and what the driver is told."""
    from benchmarks import bodies  # the settings come first

    return {
        "no-op actions, 4 threads": (bodies.noop, {"threads": 4}),
        "no-op actions, 1 thread": (bodies.noop, {"threads": 1}),
        "no-op actions, asyncio": (bodies.noop_async, {}),
        "1 ms actions, 4 threads": (bodies.wait, {"threads": 4}),
        "1 ms actions, 100 asyncio": (bodies.wait_async, {}),
        "one-row mutations, 4 threads": (bodies.write, {"threads": 4}),
        "one-row mutations, 1 thread": (bodies.write, {"threads": 1}),
    }


def run(driver: Driver) -> None:
    """Run a driver, and close the connection of its loop."""
    from django.db import connections  # the settings come first

    try:
        driver.run()
    finally:
        connections.close_all()


def wait_until_quiet() -> None:
    """Return once the driver's threads have ended, and their connections with them."""
    for thread in threading.enumerate():
        if thread.name.startswith("helisched-"):
            thread.join(10)


def measure(function: JobFunction[Any, Any], count: int, config: dict[str, Any]) -> tuple[float, float]:
    """Return the jobs per second of one run, and the microseconds of this process that each took."""
    from django_helisched.driver.config import configured
    from django_helisched.driver.opening import open_driver
    from django_helisched.functions.call import Call, enqueue_calls

    driver = open_driver(configured(fire_crons=False, **config))
    for done in range(0, count, BULK):
        enqueue_calls([Call(function) for _ in range(min(BULK, count - done))])
    ended = threading.Event()
    thread = threading.Thread(target=run, args=(driver,))
    began, used = time.perf_counter(), time.process_time()
    thread.start()
    try:
        end = time.perf_counter() + DEADLINE
        while time.perf_counter() < end and (driver.jobs.next_due_at() is not None or driver.in_flight):
            ended.wait(0.02)
        return count / (time.perf_counter() - began), (time.process_time() - used) / count * 1e6
    finally:
        driver.stop()
        thread.join()
        wait_until_quiet()


def sleep_through(count: int) -> str:
    """Run async jobs that wait for a second, all at once, and return what that took."""
    from benchmarks import bodies  # the settings come first

    speed, _ = measure(bodies.wait_a_second, count, {"async_jobs": count})
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{count} async jobs of 1 s in {count / speed:.2f} s, {memory:.0f} MB resident at most"


def show_profile(function: JobFunction[Any, Any], count: int, config: dict[str, Any]) -> None:
    """Print where the threads of one run spend their time, thread by thread."""
    profiles: dict[str, cProfile.Profile] = {}
    run = threading.Thread.run

    def profiled(thread: threading.Thread) -> None:
        profile = profiles[thread.name] = cProfile.Profile()
        profile.runcall(run, thread)

    threading.Thread.run = profiled  # type: ignore[method-assign, assignment]
    try:
        speed, _ = measure(function, count, config)
        print(f"{speed:,.0f} jobs/s while being watched")
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]
    for name, profile in profiles.items():
        print(f"--- {name}")
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=20000)
    parser.add_argument("--only", default="", help="the runs whose name contains this")
    parser.add_argument("--sleepers", type=int, default=0, help="instead: so many async jobs of a second at once")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()

    import django  # the settings come first
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    made = setup_databases(verbosity=0, interactive=False)
    try:
        if options.sleepers:
            print(f"{connection.vendor}: {sleep_through(options.sleepers)}")
        for name, (function, config) in runs().items():
            if options.sleepers or options.only not in name:
                continue
            if options.profile:
                show_profile(function, options.jobs, config)
            else:
                speed, cost = measure(function, options.jobs, config)
                print(f"{connection.vendor}: {name}: {speed:,.0f} jobs/s, {cost:.0f} us each", flush=True)
    finally:
        connection.close()
        teardown_databases(made, verbosity=0)


if __name__ == "__main__":
    main()
