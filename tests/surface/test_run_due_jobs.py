"""run_due_jobs(): a worker's code in a test's own transaction."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import TestCase

from django_helisched.models import Attempt, Job
from django_helisched.testing.driver import Runaway, run_due_jobs
from tests.app import jobs as bodies
from tests.app.models import Ledger


class InsideATestCase(TestCase):
    def tearDown(self) -> None:
        bodies.seen.clear()

    def test_a_mutation_runs_inside_the_tests_transaction(self) -> None:
        job = bodies.write.enqueue("a")
        assert run_due_jobs() == 1
        job.refresh_from_db()
        assert job.state == "success"
        assert Ledger.objects.get().marker == "a"
        assert connection.in_atomic_block

    def test_a_failed_mutation_is_undone_and_the_test_goes_on(self) -> None:
        bodies.write_until.enqueue(2, "a")
        assert run_due_jobs() == 1
        assert not Ledger.objects.exists()
        assert Attempt.objects.get().outcome == "failed"

    def test_what_jobs_enqueue_runs_too_and_what_is_not_due_stays(self) -> None:
        bodies.enqueue_note.enqueue("child")
        bodies.note.run_after(60, "later")
        assert run_due_jobs() == 2
        assert bodies.seen == [("parent", "child"), "child"]
        assert Job.objects.filter(state="pending").count() == 1

    def test_async_actions_use_the_tests_connection(self) -> None:
        Ledger.objects.create(marker="before")
        job = bodies.write_async.enqueue("a")
        run_due_jobs()
        assert Attempt.objects.get(job=job).result == 2

    def test_a_block_that_a_body_left_open_is_rolled_back_to_the_tests_own(self) -> None:
        Ledger.objects.create(marker="before")
        bodies.leave_transaction_open.enqueue("a")
        run_due_jobs()
        assert [row.marker for row in Ledger.objects.all()] == ["before"]
        assert Job.objects.get().state == "success"


@pytest.mark.django_db
def test_a_runaway_chain_is_named():
    bodies.enqueue_itself.enqueue()
    with pytest.raises(Runaway, match=r"tests\.app\.jobs\.enqueue_itself ran 20 times"):
        run_due_jobs(limit=20)


@pytest.mark.django_db
def test_nothing_due_is_no_run():
    assert run_due_jobs() == 0
