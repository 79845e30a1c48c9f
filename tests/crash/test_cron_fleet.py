"""Ten processes whose clocks disagree, crons that they all fire, and deaths and deploys in between."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from django.test import override_settings

from django_helisched import scheduler
from django_helisched.models import Cron, Fire, Job
from tests.crash.fleet import kill, terminate, wait_until

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet

SKEWS = [-600, -431, -60, -7, -0.5, 0.5, 7, 60, 431, 600]  # seconds
DECLARED = {"CRONS": ["tests.app.schedules.sixty"]}
WITHOUT_SEATS = ("--threads", "0")


def start(fleet: Fleet, skew: float) -> subprocess.Popen[str]:
    """Start a scheduler whose wall clock is wrong by ``skew`` seconds."""
    fleet.env["HELISCHED_TEST_SKEW"] = str(skew)
    return fleet.start(*WITHOUT_SEATS, POLL={"min": 0.1, "max": 0.5}, LEASE=5, **DECLARED)


def wall_clock(fleet: Fleet) -> float:
    """Return what a process of the fleet takes the time to be."""
    asked = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"], env=fleet.env, capture_output=True, check=True
    )
    return float(asked.stdout)


def all_fired(times: int) -> bool:
    return Cron.objects.count() == 60 and not Cron.objects.filter(fired__lt=times).exists()


def test_each_occurrence_of_sixty_crons_becomes_one_job_whatever_the_clocks_say(fleet: Fleet):
    skewed = Path(__file__).parent / "skewed"
    fleet.env["PYTHONPATH"] = os.pathsep.join([str(skewed), fleet.env.get("PYTHONPATH", "")])
    fleet.env["HELISCHED_TEST_SKEW"] = "600"
    assert 590 < wall_clock(fleet) - time.time() < 660
    processes = [start(fleet, skew) for skew in SKEWS]
    wait_until(lambda: all_fired(2), "every cron has fired twice")

    for process in processes[:3]:
        kill(process)
    for process in processes[3:5]:
        assert terminate(process) == 0
    with override_settings(HELISCHED=DECLARED):
        scheduler.crons.reconcile()
    processes = [*processes[5:], *(start(fleet, -skew) for skew in SKEWS[:5])]
    before = max(Cron.objects.values_list("fired", flat=True))
    wait_until(lambda: all_fired(before + 1), "every cron has fired on with other processes")
    assert [terminate(process) for process in processes] == [0] * len(processes)

    for cron in Cron.objects.all():
        interval = timedelta(seconds=2 + int(cron.name.split()[1]) % 3)
        fires = list(Fire.objects.filter(cron=cron).order_by("due_at"))
        due = [fire.due_at for fire in fires]
        assert due[0] == cron.anchor + interval
        assert {later - sooner for sooner, later in pairwise(due)} == {interval}
        assert cron.next_run_at == due[-1] + interval
        assert (cron.fired, cron.missed) == (len(fires), 0)
        jobs = Job.objects.filter(cron=cron).order_by("due_at")
        assert [job.due_at for job in jobs] == due
        assert {job.id for job in jobs} == {fire.job_id for fire in fires}
        assert all(job.created_at >= job.due_at for job in jobs)
    assert not Cron.objects.exclude(archived_at=None).exists()
