"""What the process that dies and the process that comes after it have in common: the time, the stores, a driver."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from django.db import connection

from django_helisched import wiring
from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.driver.patience import LEASES
from django_helisched.jobs.job import TERMINAL
from django_helisched.models import Attempt, Batch, Cron, Fire, Job, JobArgs, Limit, Queue, Worker
from django_helisched.stores.orm import OrmCronStore, OrmJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract.factories import LEASE
from tests.app.models import Ledger

if TYPE_CHECKING:
    from types import TracebackType

# A driver that has just begun to look takes back what lapsed longer ago than this; no back-off here is longer.
LONG = (LEASES + 2) * LEASE
ROUNDS = 20  # more than any of these jobs has attempts and callbacks


class World:
    """The stores at a time that stands still. The database is the only thing that outlives a process."""

    def __init__(self, now: datetime) -> None:
        self.clock = ManualClock(now)
        self.jobs = OrmJobStore("default", self.clock)
        self.crons = OrmCronStore("default", self.clock)
        self._wired = wiring.replaced(self.jobs, self.crons)

    def __enter__(self) -> Self:
        self._wired.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wired.__exit__(kind, error, trace)

    def driver(self, *, seats: int = 8) -> Driver:
        """Give a driver that has looked for lapsed leases already; no seats: it runs nothing."""
        config = DriverConfig(worker_id=f"worker with {seats}", lease=LEASE)
        driver = Driver(self.jobs, self.crons, config, seats=InlineSeats(seats), rng=lambda: 0.5)
        driver.sweep()
        return driver

    def recover(self) -> None:
        """Let leases lapse and time pass, and run what there is, until nothing is left."""
        for _ in range(ROUNDS):
            self.clock.advance(LONG)
            while self.driver().tick().claimed:
                pass
            if not Job.objects.exclude(state__in=TERMINAL).exists():
                return
        raise AssertionError(f"these jobs came to no end: {list(Job.objects.exclude(state__in=TERMINAL).values())}")


def clear() -> None:
    """Empty the tables, much faster than a flush."""
    with connection.cursor() as cursor:
        for model in (Job, JobArgs, Attempt, Batch, Cron, Fire, Limit, Queue, Worker, Ledger):
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(model._meta.db_table)}")


def job(name: str) -> Job:
    return Job.objects.get(name=name)


def states() -> dict[str, str]:
    """Return the state of every job that has a name."""
    return dict(Job.objects.exclude(name="").values_list("name", "state"))


def outcomes(name: str, *, lost: bool = False) -> list[str]:
    """Return how the attempts of a job ended, without the ones whose process was killed unless ``lost``."""
    rows = Attempt.objects.filter(job=job(name)).order_by("number").values_list("outcome", flat=True)
    return [outcome for outcome in rows if lost or outcome != "lost"]


def ledger() -> Counter[str]:
    """Count the effects."""
    return Counter(Ledger.objects.values_list("marker", flat=True))


def audit(ends: int) -> None:
    """Check what must hold of all jobs that have ended ``ends`` times, whatever happened to them."""
    with_args = set(Job.objects.filter(has_args=True).values_list("id", flat=True))
    assert set(JobArgs.objects.values_list("job_id", flat=True)) == with_args
    for row in Job.objects.all():
        numbers = list(Attempt.objects.filter(job=row).order_by("number").values_list("number", flat=True))
        assert numbers == list(range(1, row.attempt_count + 1)), row
        assert (row.completed_at is None, row.lease_holder) == (False, None), row
    _audit_callbacks(ends)


def _audit_callbacks(ends: int) -> None:
    made = Job.objects.filter(trigger="on_complete")
    assert not made.exclude(parent=None).exists()
    called: Counter[tuple[Any, str]] = Counter()
    for row in JobArgs.objects.filter(job__in=made):
        if "batch_id" in row.kwargs:
            continue
        called[row.kwargs["job_id"], row.kwargs["result"]["kind"]] += 1
    asked = Job.objects.exclude(on_complete="").values_list("id", "state")
    assert called == Counter({(str(job_id), state): ends for job_id, state in asked})
