"""Four processes on one database: every job once, every occurrence once."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from django_helisched.functions.call import Call, enqueue_calls
from django_helisched.models import Attempt, Cron, Fire, Job
from tests.app.models import Ledger
from tests.app.tasks import record
from tests.crash.fleet import terminate, wait_until

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet

JOBS = 2_000
PROCESSES = 4


def test_every_job_and_every_occurrence_happens_once(fleet: Fleet):
    jobs = enqueue_calls([Call(record, [f"job {number}"]) for number in range(JOBS)])
    processes = [fleet.start(CRONS=["tests.app.schedules.every_second"]) for _ in range(PROCESSES)]
    done = Job.objects.filter(fn_path=record.path, state="success")
    wait_until(lambda: done.count() == JOBS, f"all {JOBS} jobs are done", deadline=240)
    wait_until(lambda: Fire.objects.count() >= 5, "five seconds of the cron have been fired")
    assert [terminate(process) for process in processes] == [0] * PROCESSES

    assert Counter(Ledger.objects.filter(marker__startswith="job").values_list("marker", flat=True)) == Counter(
        f"job {number}" for number in range(JOBS)
    )
    assert Attempt.objects.filter(job__in=[job.pk for job in jobs[:500]]).count() == 500
    assert set(done.values_list("attempt_count", "losses")) == {(1, 0)}
    cron = Cron.objects.get(name="tick")
    fires = list(Fire.objects.filter(cron=cron).order_by("due_at"))
    assert cron.missed == 0
    assert cron.fired == len(fires) == Job.objects.filter(cron=cron).count()
    seconds = [(later.due_at - sooner.due_at).total_seconds() for sooner, later in itertools.pairwise(fires)]
    assert set(seconds) == {1.0}
    ticks = Counter(Ledger.objects.filter(marker__startswith="tick").values_list("marker", flat=True))
    assert set(ticks.values()) <= {1}
