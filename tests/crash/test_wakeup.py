"""Schedulers that look by themselves once in ten minutes: what they do sooner, they were told to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from django_helisched import scheduler
from django_helisched.models import Job
from tests.app.models import Ledger
from tests.app.tasks import append_and_wait, record, wait_until_canceled
from tests.crash.fleet import terminate, wait_until

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet

RARELY = 600.0  # seconds
PATIENT: dict[str, Any] = {"POLL": dict.fromkeys(("min", "max", "net"), RARELY), "SWEEP": RARELY, "LEASE": 3 * RARELY}


def states(*jobs: Job) -> set[str]:
    return set(Job.objects.filter(pk__in=[job.pk for job in jobs]).values_list("state", flat=True))


def done(*jobs: Job) -> None:
    wait_until(lambda: states(*jobs) == {"success"}, "the jobs are done")


def ready(fleet: Fleet, count: int = 1) -> None:
    """Return once so many times somebody has said that it hears."""
    wait_until(lambda: len(fleet.events("wakeup.ready")) >= count, "the schedulers listen")


@pytest.fixture
def patient(fleet: Fleet) -> Fleet:
    """Give a fleet with one scheduler that listens, and looks by itself when no test would wait for it."""
    fleet.start("--json-logs", **PATIENT)
    ready(fleet)
    return fleet


def test_jobs_of_another_process_are_begun_at_once(patient: Fleet):
    for marker in "abc":
        done(record.enqueue(marker))


def test_jobs_that_follow_each_other_within_a_millisecond_are_all_begun(patient: Fleet):
    jobs = [record.enqueue(str(number)) for number in range(30)]
    with transaction.atomic():
        jobs += [record.enqueue(str(number)) for number in range(30, 40)]
    done(*jobs)


def test_a_job_that_is_due_before_the_next_look_is_begun_at_its_instant(patient: Fleet):
    late = record.run_after(2.0, "late")
    done(late)
    late.refresh_from_db()
    assert late.started_at is not None
    assert late.started_at >= late.due_at


def test_a_job_behind_one_that_runs_for_long_is_begun_at_its_instant(patient: Fleet):
    append_and_wait.enqueue("long")
    wait_until(lambda: patient.has("long.1"), "the first one runs")
    late = record.run_after(1.0, "late")
    done(late)
    patient.let_go()


def test_a_requeued_job_is_begun_at_once(patient: Fleet):
    job = record.enqueue("a")
    done(job)
    scheduler.requeue(job)
    wait_until(lambda: Ledger.objects.filter(marker="a").count() == 2, "it is done again")


def test_a_running_job_is_canceled_although_its_heartbeat_is_far_away(patient: Fleet):
    job = wait_until_canceled.enqueue()
    wait_until(lambda: patient.has("waiting"), "it runs")
    scheduler.cancel(job)
    wait_until(lambda: states(job) == {"canceled"}, "it is canceled")


def test_every_process_is_told(patient: Fleet):
    patient.start("--json-logs", "--queue-name", "vip", **PATIENT)
    ready(patient, 2)
    jobs = [record.enqueue("a"), record.using(queue="vip").enqueue("b")]
    done(*jobs)


def test_a_scheduler_that_ends_leaves_nothing_behind(patient: Fleet):
    (process,) = patient._started
    assert terminate(process) == 0
