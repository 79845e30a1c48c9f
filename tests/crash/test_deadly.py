"""Jobs that kill their process, and processes that are killed: what it costs whom."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from django_helisched import wiring
from django_helisched.functions.call import Call, enqueue_calls
from django_helisched.models import Job
from tests.app.models import Ledger
from tests.app.tasks import append_and_hold, kill_its_process, record
from tests.crash.fleet import kill, wait_until

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet

MAX_LOSSES = 3
NEIGHBOURS = 40
BACKOFF = {"initial": 0.1, "base": 2, "max": 600}
DEPLOYS = 3
JOBS = 4
FLEET = 2


def all_run(fleet: Fleet, attempt: int) -> bool:
    return all(fleet.has(f"job {number}.{attempt}") for number in range(JOBS))


@pytest.mark.parametrize("processes", [1, 3])
def test_a_job_that_kills_its_process_is_given_up_and_its_neighbours_finish(fleet: Fleet, processes: int):
    poison = kill_its_process.using(priority=50).enqueue("poison")
    neighbours = enqueue_calls([Call(record, [f"neighbour {number}"]) for number in range(NEIGHBOURS)])

    def is_over() -> bool:
        fleet.keep(processes, MAX_LOSSES=MAX_LOSSES, BACKOFF=BACKOFF)
        return not Job.objects.filter(completed_at=None).exists()

    wait_until(is_over, "every job has ended")
    assert set(fleet.terminate()) <= {0}
    poison.refresh_from_db()
    assert (poison.state, poison.failure_reason, poison.losses) == ("failed", "lost", MAX_LOSSES)
    assert poison.attempts == 0
    assert "stopped reporting" in poison.last_error
    attempts = wiring.job_store().attempts_of(poison.pk)
    assert [attempt.outcome for attempt in attempts] == ["lost"] * MAX_LOSSES
    for number, (sooner, later) in enumerate(itertools.pairwise(attempts), start=1):
        assert later.started_at is not None
        rest = (later.started_at - sooner.ended_at).total_seconds()
        assert rest >= 0.5 * BACKOFF["initial"] * 2 ** (number + 1)
    assert set(Job.objects.filter(pk__in=[job.pk for job in neighbours]).values_list("state", flat=True)) == {"success"}
    assert Counter(Ledger.objects.values_list("marker", flat=True)) == Counter(
        f"neighbour {number}" for number in range(NEIGHBOURS)
    )


def test_three_deploys_that_kill_a_fleet_spend_nobodys_budget(fleet: Fleet):
    jobs = [append_and_hold.using(max_failures=1).enqueue(f"job {number}") for number in range(JOBS)]
    for deploy in range(1, DEPLOYS + 1):
        processes = [fleet.start(BACKOFF=BACKOFF) for _ in range(FLEET)]
        wait_until(partial(all_run, fleet, deploy), "all jobs run")
        for process in processes:
            kill(process)
    fleet.start(BACKOFF=BACKOFF)
    fleet.let_go()
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs])
    wait_until(lambda: set(rows.values_list("state", flat=True)) == {"success"}, "all jobs are done")
    assert fleet.terminate() == [0]
    assert set(rows.values_list("attempts", "losses", "attempt_count")) == {(0, DEPLOYS, DEPLOYS + 1)}
    assert Counter(fleet.lines()) == Counter(
        f"job {number} {attempt}" for number in range(JOBS) for attempt in range(1, DEPLOYS + 2)
    )
