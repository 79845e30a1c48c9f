"""Many writers on one database; on SQLite all of them wait for one lock."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from django_helisched import wiring
from django_helisched.models import Job
from tests.app.models import Ledger, Note
from tests.app.tasks import append_and_wait, record, record_and_hold
from tests.crash.fleet import LEASE, terminate, wait_until
from tests.crash.hammer import hammer, markers

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet

WEB_PROCESSES = 4
HOLDS = 2
OUTAGES = ("database.lost", "heartbeat.lost", "job.unsettled", "log")


def test_no_request_and_no_loop_is_refused_while_web_processes_and_schedulers_write(fleet: Fleet):
    schedulers = [fleet.start("--json-logs") for _ in range(2)]
    names = [f"web {number}" for number in range(WEB_PROCESSES)]
    web = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash.hammer", name],
            env=fleet.env,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for name in names
    ]
    assert hammer("here") == []
    assert [(process.communicate()[1], process.returncode) for process in web] == [("", 0)] * WEB_PROCESSES

    asked = Counter(marker for name in [*names, "here"] for marker in markers(name))
    done = Job.objects.filter(fn_path=record.path, state="success")
    wait_until(lambda: done.count() == asked.total(), "every enqueued job is done")
    assert [terminate(process) for process in schedulers] == [0, 0]
    assert Counter(Ledger.objects.values_list("marker", flat=True)) == asked
    assert Counter(Note.objects.values_list("text", flat=True)) == asked
    assert set(done.values_list("attempt_count", "losses", "attempts")) == {(1, 0, 0)}
    assert fleet.events(*OUTAGES) == []


def test_a_mutation_that_holds_its_lock_for_two_leases_costs_nobody_a_lease(fleet: Fleet):
    waiting = [append_and_wait.enqueue(f"action {number}") for number in range(3)]
    first = fleet.start("--json-logs")
    wait_until(lambda: all(fleet.has(f"action {number}.1") for number in range(3)), "the actions run")
    second = fleet.start("--json-logs")
    holding = []
    for number in range(HOLDS):
        holding.append(record_and_hold.enqueue(f"hold {number}"))
        hold_for_two_leases(fleet, f"hold {number}")
        wait_until(lambda: state_of(holding[-1]) == "success", "the mutation is done")
    fleet.let_go()
    assert [terminate(process) for process in (first, second)] == [0, 0]

    jobs = Job.objects.filter(pk__in=[job.pk for job in [*waiting, *holding]])
    assert set(jobs.values_list("state", "attempt_count", "losses")) == {("success", 1, 0)}
    assert Ledger.objects.count() == HOLDS
    assert fleet.events("job.swept", "job.lost", *OUTAGES) == []


def hold_for_two_leases(fleet: Fleet, name: str) -> None:
    wait_until(lambda: fleet.has(name), f"{name} has its lock")
    store = wiring.job_store()
    begun = store.now()
    wait_until(lambda: (store.now() - begun).total_seconds() > 2 * LEASE, "two leases have passed")
    fleet.let_go(f"{name}.go")


def state_of(job: Job) -> str:
    return Job.objects.values_list("state", flat=True).get(pk=job.pk)
