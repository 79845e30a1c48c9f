"""Late and stalled: a process that outlives its lease can change nothing of ours."""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from django_helisched import wiring
from django_helisched.models import Job, Progress, Worker
from tests.app.models import Ledger
from tests.app.tasks import be_late, closed, report_and_spawn, write_late
from tests.crash.fleet import LEASE, terminate, wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.crash.fleet import Fleet

WAYS = ["stopped", "holds the GIL"]


def outcomes(job: Job) -> list[str]:
    return [attempt.outcome for attempt in wiring.job_store().attempts_of(job.pk)]


def state(job: Job) -> str:
    return Job.objects.values_list("state", flat=True).get(pk=job.pk)


def progress_of(job: Job) -> list[tuple[int, int]]:
    return list(Progress.objects.filter(job_id=job.pk).values_list("done", "fence"))


def wait_for_a_beat(worker: Worker) -> None:
    """Return once the worker has reported again."""
    reports = Worker.objects.filter(pk=worker.pk)
    seen = reports.get().last_seen
    wait_until(lambda: reports.filter(last_seen__gt=seen).exists(), "the process beats again")


@contextmanager
def standing_still(fleet: Fleet, how: str, *, is_writing: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Start a scheduler that stands still inside the body of "late", and goes on after the block."""
    with (fleet.directory / "gil").open("w") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        process = fleet.start("--json-logs")
        wait_until(lambda: fleet.has("late.1"), "the body runs")
        if how == "stopped":
            # Where there is one writer, nobody but the body may take that lock along into this sleep.
            with nullcontext() if is_writing else transaction.atomic():
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        yield process
    fleet.let_go()
    process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("how", WAYS)
def test_the_late_end_of_an_action_is_dropped_and_logged(fleet: Fleet, how: str):
    job = be_late.using(on_complete=closed, context="late").enqueue("late", how)
    with standing_still(fleet, how) as process:
        other = fleet.start("--json-logs")
        wait_until(lambda: state(job) == "success", "another process has run it")
    wait_until(lambda: fleet.events("job.lost"), "the late end is logged")
    wait_until(Ledger.objects.exists, "the end has called back")
    assert [terminate(process), terminate(other)] == [0, 0]
    assert (fleet.lines(), outcomes(job)) == (["late 1", "late 2"], ["lost", "success"])
    (lost,) = fleet.events("job.lost")
    assert (lost["job"], lost["attempt"]) == (str(job.pk), 1)
    assert [row.marker for row in Ledger.objects.all()] == ["late success"]


@pytest.mark.parametrize("how", WAYS)
def test_a_late_mutation_takes_effect_once(fleet: Fleet, how: str):
    job = write_late.using(on_complete=closed, context="callback").enqueue("late", how)
    # Where there is one writer, the process that stands still is it: nobody can take its job.
    has_others = connection.features.has_select_for_update
    store = wiring.job_store()
    with standing_still(fleet, how, is_writing=True) as process:
        other = fleet.start("--json-logs")
        begun = store.now()
        wait_until(lambda: (store.now() - begun).total_seconds() > 2 * LEASE, "two leases have passed")
        wait_until(lambda: not has_others or state(job) == "success", "another process has run it, if it could")
    wait_until(lambda: state(job) == "success", "it is done")
    wait_until(lambda: not has_others or fleet.events("job.lost"), "the late end is logged")
    wait_until(lambda: Ledger.objects.count() == 2, "the end has called back")
    # Where the other one had nothing to do it may not even have begun to heed signals.
    wait_until(lambda: len(fleet.events("wakeup.ready")) == 2, "both are at work")
    assert [terminate(process), terminate(other)] == [0, 0]
    assert outcomes(job) == (["lost", "success"] if has_others else ["success"])
    assert sorted(row.marker for row in Ledger.objects.all()) == ["callback success", "late"]


def test_progress_and_children_of_a_process_that_stood_still_are_refused(fleet: Fleet):
    job = report_and_spawn.enqueue("late")
    with standing_still(fleet, "stopped") as process:
        other = fleet.start("--json-logs")
        wait_until(lambda: progress_of(job) == [(2, 2)], "another process has reported progress")
        (stalled,) = Worker.objects.filter(pid=process.pid)
    wait_until(lambda: "1 refused" in fleet.lines(), "the child is refused")
    # Of two beats one has begun after the report.
    wait_for_a_beat(stalled)
    wait_for_a_beat(stalled)
    fleet.let_go("late.1.end")
    fleet.let_go("late.2.end")
    wait_until(lambda: state(job) == "success" and bool(fleet.events("job.lost")), "both attempts are over")
    assert [terminate(process), terminate(other)] == [0, 0]
    assert sorted(fleet.lines()) == ["1 refused", "2 enqueued"]
    assert progress_of(job) == [(2, 2)]
    assert [row.marker for row in Ledger.objects.all()] == ["child of attempt 2"]
    assert list(Job.objects.filter(parent=job.pk).values_list("state", flat=True)) == ["success"]
