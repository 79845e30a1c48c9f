"""SIGKILL of a real scheduler in the middle of a body."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from django_helisched import wiring
from django_helisched.models import Job
from tests.app.models import Ledger
from tests.app.tasks import append_and_end, append_and_wait, append_once_and_wait, record_and_wait
from tests.crash import server
from tests.crash.fleet import kill, terminate, wait_until

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet


def outcomes(job: Job) -> list[str]:
    return [attempt.outcome for attempt in wiring.job_store().attempts_of(job.pk)]


def state(job: Job) -> str:
    return Job.objects.values_list("state", flat=True).get(pk=job.pk)


def run_until_killed(fleet: Fleet, marker: str) -> None:
    """Start a scheduler and kill it once the body of ``marker`` stands in its middle."""
    process = fleet.start()
    wait_until(lambda: fleet.has(f"{marker}.1"), f"the body of {marker} runs")
    kill(process)


def test_a_mutation_killed_in_its_middle_takes_effect_once(fleet: Fleet):
    job = record_and_wait.enqueue("m")
    run_until_killed(fleet, "m")
    assert not Ledger.objects.exists()
    other = fleet.start()
    wait_until(lambda: state(job) == "success", "the mutation is done by another process")
    assert Ledger.objects.filter(marker="m").count() == 1
    assert outcomes(job) == ["lost", "success"]
    assert terminate(other) == 0


def test_an_action_killed_in_its_middle_runs_again(fleet: Fleet):
    job = append_and_wait.enqueue("a")
    run_until_killed(fleet, "a")
    other = fleet.start()
    wait_until(lambda: state(job) == "success", "the action is run again")
    assert fleet.lines() == ["a 1", "a 2"]
    assert outcomes(job) == ["lost", "success"]
    assert terminate(other) == 0


def test_an_action_whose_end_was_not_written_yet_runs_again(fleet: Fleet):
    job = append_and_end.enqueue("a")
    process = fleet.start()
    wait_until(lambda: fleet.has("a.1"), "the body runs")
    with transaction.atomic():
        # Whoever wants to write its end waits for this: for the row, or on SQLite for the one writer there is.
        Job.objects.filter(pk=job.pk).update(name="held")
        fleet.let_go()
        wait_until(lambda: fleet.has("ended"), "the body has ended")
        kill(process)
        # A statement that a server has in hand it finishes, though nobody waits for the answer any more.
        for number in server.others() if connection.vendor != "sqlite" else ():
            server.end(number)
    assert (state(job), fleet.lines()) == ("in_progress", ["a 1"])
    other = fleet.start()
    wait_until(lambda: state(job) == "success", "the action is run again")
    assert fleet.lines() == ["a 1", "a 2"]
    assert outcomes(job) == ["lost", "success"]
    assert terminate(other) == 0


def test_an_action_that_runs_at_most_once_is_failed_and_never_run_again(fleet: Fleet):
    job = append_once_and_wait.enqueue("o")
    run_until_killed(fleet, "o")
    other = fleet.start()
    wait_until(lambda: state(job) == "failed", "the loss is written down")
    assert terminate(other) == 0
    assert fleet.lines() == ["o 1"]
    job.refresh_from_db()
    assert (job.failure_reason, job.losses, outcomes(job)) == ("lost", 1, ["lost"])
    assert "stopped reporting" in job.last_error


@pytest.mark.parametrize("body", [record_and_wait, append_and_wait], ids=["mutation", "action"])
def test_a_job_of_three_leases_runs_once_and_survives_sigterm(fleet: Fleet, body):
    job = body.enqueue("long")
    process = fleet.start()
    wait_until(lambda: fleet.has("long.1"), "the body runs")
    other = fleet.start()
    process.terminate()
    store = wiring.job_store()
    begun = store.now()
    wait_until(lambda: (store.now() - begun).total_seconds() > 3.3, "three leases have passed")
    assert state(job) == "in_progress"
    fleet.let_go()
    assert process.wait(timeout=30) == 0
    assert state(job) == "success"
    assert outcomes(job) == ["success"]
    assert terminate(other) == 0
    assert Ledger.objects.count() + len(fleet.lines()) == 1
