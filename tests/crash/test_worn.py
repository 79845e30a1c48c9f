"""A process whose threads are occupied by bodies that do not stop leaves, so that it can be started anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched import wiring
from django_helisched.models import Job
from tests.app.models import Ledger
from tests.app.tasks import record, write_and_stand_still
from tests.crash.fleet import DEADLINE, terminate, wait_until

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet


def outcomes(job: Job) -> list[str]:
    return [attempt.outcome for attempt in wiring.job_store().attempts_of(job.pk)]


def test_a_worn_out_process_leaves_with_a_code_of_its_own_and_the_next_one_goes_on(fleet: Fleet):
    job = write_and_stand_still.enqueue("m")
    worn = fleet.start("--threads", "1", "--json-logs", TIMEOUT_GRACE=0.2)
    assert worn.wait(DEADLINE) == 75
    told = [event["event"] for event in fleet.events("job.abandoned", "job.retried", "driver.worn")]
    assert sorted(told) == ["driver.worn", "job.abandoned", "job.retried"]
    assert outcomes(job) == ["timeout"]
    assert not Ledger.objects.exists()
    fresh = fleet.start()
    wait_until(lambda: Job.objects.get(pk=job.pk).state == "success", "the mutation is done by the next process")
    assert Ledger.objects.filter(marker="m").count() == 1
    assert terminate(fresh) == 0


def test_a_process_that_left_one_of_many_bodies_goes_on_and_drains_as_any_other(fleet: Fleet):
    job = write_and_stand_still.enqueue("m")
    process = fleet.start("--threads", "2", TIMEOUT_GRACE=0.2)
    wait_until(lambda: outcomes(job)[:1] == ["timeout"], "the first attempt is abandoned")
    other = record.enqueue("a")
    wait_until(
        lambda: {Job.objects.get(pk=each.pk).state for each in (job, other)} == {"success"},
        "the same process has done both",
    )
    assert terminate(process) == 0
    assert Ledger.objects.filter(marker="m").count() == 1


def test_once_prints_its_summary_all_the_same(fleet: Fleet):
    job = write_and_stand_still.enqueue("m")
    process = fleet.start("--once", "--threads", "1", TIMEOUT_GRACE=0.2)
    assert process.wait(DEADLINE) == 0
    assert outcomes(job) == ["timeout"]
    assert '"retried": 1' in fleet.output()
