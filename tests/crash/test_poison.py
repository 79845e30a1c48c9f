"""One bad row harms only itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched import wiring
from django_helisched.functions.call import Call, enqueue_calls
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import NewJob
from django_helisched.models import Attempt, Cron, Job
from tests.app.tasks import raise_unprintable, raise_with_nul, record, return_an_object
from tests.crash.fleet import terminate, wait_until

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet


def unknown_job() -> NewJob:
    now = wiring.job_store().now()
    return NewJob(id=uuid7(), fn_path="tests.app.tasks.gone", created_at=now, due_at=now, next_run_at=now)


def broken_cron() -> Cron:
    now = wiring.job_store().now()
    return Cron.objects.create(
        source="operator",
        name="broken",
        spec='{"kind":"cron","expr":"garbage"}',
        fn_path=record.path,
        anchor=now,
        next_run_at=now,
        counted_since=now,
        declared_at=now,
    )


def test_each_bad_row_keeps_its_own_error_and_a_hundred_good_jobs_succeed(fleet: Fleet):
    (gone,) = wiring.job_store().enqueue([unknown_job()])
    cron = broken_cron()
    odd, unprintable, nul = return_an_object.enqueue(), raise_unprintable.enqueue(), raise_with_nul.enqueue()
    good = enqueue_calls([Call(record, [str(number)]) for number in range(100)])
    process = fleet.start(UNKNOWN_GRACE=0)
    wait_until(lambda: not Job.objects.filter(completed_at=None).exists(), "every job has ended")
    wait_until(lambda: Cron.objects.get(pk=cron.pk).next_run_at is None, "the broken cron is parked")
    assert terminate(process) == 0

    assert Job.objects.filter(pk__in=[job.pk for job in good], state="success", attempt_count=1).count() == 100
    lost = Job.objects.get(pk=gone.job.id)
    assert (lost.state, lost.failure_reason, lost.attempt_count) == ("failed", "unknown_function", 0)
    assert "tests.app.tasks.gone" in lost.last_error
    assert "garbage" in Cron.objects.get(pk=cron.pk).last_error
    kept = Attempt.objects.get(job=odd)
    assert (kept.outcome, kept.result) == ("success", None)
    assert "object" in kept.error
    silent = Attempt.objects.get(job=unprintable)
    assert (silent.outcome, silent.error_class) == ("failed", "tests.app.tasks.Unprintable")
    assert "RuntimeError" in silent.error
    cut = Attempt.objects.get(job=nul)
    assert "\\x00" in cut.error
    assert "\\udcff" in cut.error
