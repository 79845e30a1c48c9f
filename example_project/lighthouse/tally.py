"""What one run of the demo did, counted from the database's rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F
from django.db.models.functions import Now

from django_helisched.models import Fire, Job, Worker
from lighthouse.models import Storm

# A due occurrence became a job, in time or late.
FIRED = ("enqueued", "caught_up")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its schedulers' ids begin with ``worker_prefix``, its first row is not older than ``started_at``."""

    worker_prefix: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Tally:
    """The sums of one run."""

    succeeded: int
    fired: int
    failed: int

    def __str__(self) -> str:
        return f"demo: {self.succeeded} jobs succeeded, {self.fired} crons fired, {self.failed} failed"


def database_now() -> datetime:
    """Give the database's time, on which rows of different machines can be compared."""
    return Storm.objects.annotate(now=Now()).values_list("now", flat=True).get(pk=1)


def count_run(run: Run) -> Tally:
    """Count the run's jobs and crons, and nobody else's.

    A job belongs to the run whose scheduler ended its last attempt. A firing does
    not say which scheduler decided it: while this run's are alone on the database
    every new firing is theirs, else those whose job they ran.
    """
    ours = Job.objects.filter(
        history__worker_id__startswith=run.worker_prefix,
        history__number=F("attempt_count"),
        completed_at__gte=run.started_at,
    )
    fires = Fire.objects.filter(decided_at__gte=run.started_at, outcome__in=FIRED)
    others = Worker.objects.filter(last_seen__gte=run.started_at).exclude(id__startswith=run.worker_prefix)
    if others.exists():
        fires = fires.filter(job__history__worker_id__startswith=run.worker_prefix)
    return Tally(
        succeeded=ours.filter(state="success").distinct().count(),
        fired=fires.distinct().count(),
        failed=ours.filter(state="failed").distinct().count(),
    )
