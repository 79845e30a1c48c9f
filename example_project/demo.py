"""Run The Lighthouse Keeper: web server and scheduler together, until Ctrl-C or DEMO_SECONDS.

DATABASE_URL moves it from a fresh SQLite file to another database, DEMO_PORT
chooses the port, STORM the weather. The last line counts what this run did, from
the rows in the database; the exit code is 0 only if jobs succeeded and crons fired.
"""

from __future__ import annotations

import secrets
import signal
import sys
import time
from typing import TYPE_CHECKING

import crew
import groundwork

if TYPE_CHECKING:
    from types import FrameType

    from lighthouse.tally import Run, Tally

# One Ctrl-C may arrive twice, from the terminal and from make.
ECHO_SECONDS = 1.0
GLANCE = 0.2


class Signals:
    """Counts the requests to stop."""

    def __init__(self) -> None:
        self.count = 0
        self._last = 0.0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > ECHO_SECONDS:
            self.count += 1
        self._last = now


def main() -> int:
    """Run the demo and give its exit code."""
    try:
        seconds = groundwork.duration()
        groundwork.check_packages()
        port = groundwork.choose_port()
        own_file = groundwork.choose_database(port)
        password = groundwork.prepare(own_file=own_file)
        return run(port, seconds, password)
    except groundwork.DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


def run(port: int, seconds: float | None, password: str) -> int:
    """Start both children, watch them, stop them, count; give the exit code."""
    this_run = open_run()
    signals = Signals()
    children = {
        "web server": crew.start("web server", ["runserver", f"{groundwork.HOST}:{port}", "--noreload"], quiet=True),
        "scheduler": start_scheduler(this_run, 1),
    }
    announce(port, seconds, password)
    broken = watch(children, this_run, seconds, signals)
    print("demo: stopping; what runs is finished first.", flush=True)
    heard = signals.count
    crew.stop(list(children.values()), lambda: signals.count > heard)
    tally = close_run(this_run)
    print(tally, flush=True)
    return 1 if broken or not (tally.succeeded and tally.fired) else 0


def open_run() -> Run:
    """Note the database's time and enqueue the first jobs."""
    from lighthouse.opening import first_light
    from lighthouse.tally import Run, database_now

    this_run = Run(worker_prefix=f"demo-{secrets.token_hex(4)}-", started_at=database_now())
    first_light()
    groundwork.disconnect()
    return this_run


def close_run(this_run: Run) -> Tally:
    """Count the run; raise DemoError if the database is gone."""
    from django.db import DatabaseError

    from lighthouse.tally import count_run

    try:
        return count_run(this_run)
    except DatabaseError as error:
        raise groundwork.DemoError(f"the run cannot be counted: {groundwork.first_line(error)}") from None


def start_scheduler(this_run: Run, number: int) -> crew.Child:
    """Start a scheduler whose worker id belongs to this run."""
    return crew.start("scheduler", ["runscheduler", "--worker-id", f"{this_run.worker_prefix}{number}"])


def announce(port: int, seconds: float | None, password: str) -> None:
    """Print where to look."""
    site = f"http://{groundwork.HOST}:{port}/"
    until = "Ctrl-C" if seconds is None else f"{seconds:g} s have passed"
    print(
        f"\n  The Lighthouse Keeper   {site}\n"
        f"  Admin                   {site}admin/   user {groundwork.USER}, password {password}\n"
        f"  Runs until {until}.\n",
        flush=True,
    )


def watch(children: dict[str, crew.Child], this_run: Run, seconds: float | None, signals: Signals) -> bool:
    """Wait for the end; replace a scheduler whose cable was cut. True if a child ended early."""
    from lighthouse.storm import CABLE_CUT_EXIT_CODE

    deadline = None if seconds is None else time.monotonic() + seconds
    schedulers = 1
    while not signals.count and (deadline is None or time.monotonic() < deadline):
        dead = next((child for child in children.values() if not child.alive), None)
        if dead is None:
            crew.wait(GLANCE)
        elif dead.role == "scheduler" and dead.process.returncode == CABLE_CUT_EXIT_CODE:
            schedulers += 1
            print("demo: the cable was cut and the scheduler is dead; starting another, which takes over.", flush=True)
            children["scheduler"] = start_scheduler(this_run, schedulers)
        else:
            print(f"demo: the {dead.role} ended early ({dead.ending}); its last lines above say why.", file=sys.stderr)
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
