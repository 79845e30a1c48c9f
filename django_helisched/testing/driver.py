"""Run jobs in a test: in its own thread, on its own connection, inside its transaction."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from django_helisched import wiring
from django_helisched.driver import Driver, InlineSeats, configured
from django_helisched.driver.events import What, log_event

if TYPE_CHECKING:
    from django_helisched.driver.events import Event


class Runaway(AssertionError):
    """More jobs ran than a test can mean: some job enqueues itself again and again."""


def run_due_jobs(limit: int = 1000) -> int:
    """Fire and run what is due, and what that makes due, until nothing is; return how many jobs ran.

    The code of a worker, without its threads: jobs run one after another, here.
    Retries and delayed jobs are not due yet and stay. Raises Runaway, naming
    the function that ran most, after ``limit`` jobs.
    """
    runs: Counter[str] = Counter()

    def observe(event: Event) -> None:
        if event.what is What.JOB_STARTED:
            runs[event.fn_path] += 1  # type: ignore[union-attr]
        log_event(event)

    driver = Driver(
        wiring.job_store(), wiring.cron_store(), configured(threads=1), seats=InlineSeats(1), observe=observe
    )
    while driver.tick().claimed:
        if runs.total() >= limit:
            (path, times), *_ = runs.most_common(1)
            raise Runaway(
                f"run_due_jobs() ran {runs.total()} jobs and still more are due; {path} ran {times} times. "
                "A job that enqueues itself must do so for a later time, or the limit= is too low."
            )
    return runs.total()
