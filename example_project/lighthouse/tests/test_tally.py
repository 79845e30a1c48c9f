# ruff: noqa: PT009 # Django's runner explains a failed assertEqual, and no bare assert.
from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count

from django.test import TestCase

from django_helisched.models import Attempt, Cron, Fire, Job, Worker
from lighthouse.clock import utc_now
from lighthouse.tally import Run, Tally, count_run, database_now

START = utc_now()
MINUTE = timedelta(minutes=1)
OURS, THEIRS = Run("demo-ours-", START), Run("demo-theirs-", START)


def ended_job(worker: str, state: str = "success", at: datetime = START + MINUTE) -> Job:
    job = Job.objects.create(
        fn_path="lighthouse.jobs.log_watch",
        kind="mutation",
        state=state,
        due_at=at,
        next_run_at=at,
        created_at=at,
        completed_at=at,
        attempt_count=2,
    )
    Attempt.objects.create(job=job, number=1, outcome="lost", ended_at=at, worker_id="demo-dead-1")
    Attempt.objects.create(job=job, number=2, outcome=state, ended_at=at, worker_id=worker)
    return job


class TallyTests(TestCase):
    def setUp(self) -> None:
        self.cron = Cron.objects.create(
            source="code",
            name="fog",
            spec="{}",
            fn_path="lighthouse.jobs.check_fog",
            anchor=START,
            counted_since=START,
            declared_at=START,
        )
        self.seconds = count()

    def fire(self, job: Job | None, outcome: str = "enqueued", at: datetime = START + MINUTE) -> None:
        due = at + timedelta(seconds=next(self.seconds))
        Fire.objects.create(cron=self.cron, due_at=due, last_due_at=due, decided_at=at, outcome=outcome, job=job)

    def see(self, worker: str, at: datetime = START + MINUTE) -> None:
        Worker.objects.create(id=worker, started_at=at, last_seen=at)

    def test_a_run_counts_its_jobs_and_its_fires(self) -> None:
        self.see("demo-ours-1")
        self.fire(ended_job("demo-ours-1"))
        self.fire(ended_job("demo-ours-2", "failed"))
        self.assertEqual(str(count_run(OURS)), "demo: 1 jobs succeeded, 2 crons fired, 1 failed")

    def test_two_runs_at_once_never_count_each_others_rows(self) -> None:
        self.see("demo-ours-1")
        self.see("demo-theirs-1")
        self.fire(ended_job("demo-ours-1"))
        for _ in range(3):
            self.fire(ended_job("demo-theirs-1"))
        self.fire(None)
        self.assertEqual(count_run(OURS), Tally(1, 1, 0))
        self.assertEqual(count_run(THEIRS), Tally(3, 3, 0))

    def test_what_happened_before_the_start_is_not_counted(self) -> None:
        self.fire(ended_job("demo-ours-1", at=START - MINUTE), at=START - MINUTE)
        self.see("demo-earlier-1", at=START - MINUTE)
        self.assertEqual(count_run(OURS), Tally(0, 0, 0))

    def test_alone_on_the_database_a_firing_counts_before_its_job_has_run(self) -> None:
        self.see("demo-ours-1")
        self.fire(None)
        self.assertEqual(count_run(OURS), Tally(0, 1, 0))

    def test_an_occurrence_that_became_no_job_is_no_firing(self) -> None:
        for outcome in ("missed", "skipped_overlap", "refused"):
            self.fire(None, outcome)
        self.fire(None, "caught_up")
        self.assertEqual(count_run(OURS).fired, 1)

    def test_the_databases_time_is_aware_and_close_to_this_hosts(self) -> None:
        self.assertLess(abs(database_now() - utc_now()), MINUTE)
