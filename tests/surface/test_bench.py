"""manage.py helisched bench: figures of the project's own database, and not a row left."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError
from django.db import connection

from django_helisched import wiring
from django_helisched.exceptions import HelischedError
from django_helisched.inspection.bench_limits import Cost, Probe, shares
from django_helisched.inspection.bench_rows import AHEAD, BenchRows
from django_helisched.jobs.job import State
from django_helisched.jobs.outcome import AttemptOutcome, Outcome
from django_helisched.models import Attempt, Job, JobArgs
from django_helisched.stores.base import CLAIM_LIMIT
from tests.app.jobs import tell
from tests.surface.asking import ask

LEASE = timedelta(seconds=30)
LOST = Outcome(state=State.PENDING, attempt=AttemptOutcome.LOST, retry_in=timedelta(0), losses=1)


@pytest.mark.django_db(transaction=True)
class TestCommand:
    def test_every_way_has_a_rate_and_what_limits_it_and_no_row_is_left(self):
        mine = tell.enqueue("mine")
        head, _, _, *rows, _, note = ask("bench", "--jobs", "70")
        assert head.startswith(f"{connection.display_name} (default): one statement there and back ")
        assert [row.split("  ")[0] for row in rows] == [
            "enqueue, each in a transaction of its own",
            "enqueue, all in one transaction",
            "enqueue, 1,000 at once",
            "actions, claimed and ended 64 at a time",
            "mutations, each ended in its own transaction",
        ]
        assert all(row.endswith("% of the time)") for row in rows)
        assert note.endswith("310 jobs were stored for it, out of reach of schedulers, and deleted.")
        assert [job.id for job in Job.objects.all()] == [mine.id]
        assert (Attempt.objects.count(), JobArgs.objects.count()) == (0, 1)

    def test_json_has_the_shares_of_the_time(self):
        told = json.loads("\n".join(ask("bench", "--jobs", "64", "--json")))
        assert told["database"] == connection.vendor
        assert len(told["figures"]) == 5
        for figure in told["figures"]:
            assert figure["jobs_per_second"] > 0
            assert sum(figure["shares"].values()) == pytest.approx(1, abs=0.03)

    @pytest.mark.parametrize("number", ["63", "100001", "-1"])
    def test_a_number_of_jobs_that_says_nothing_or_is_a_load_test_is_refused(self, number):
        with pytest.raises(CommandError, match=f"--jobs {number} must be 64 to 100000"):
            ask("bench", "--jobs", number)


@pytest.mark.django_db(transaction=True)
class TestRows:
    @pytest.fixture
    def rows(self):
        rows = BenchRows("default")
        yield rows
        rows.delete()

    def test_no_scheduler_meets_what_waits(self, rows):
        rows.store(70)
        store = wiring.job_store()
        assert store.claim(worker_id="other", limit=64, lease=LEASE) == []
        due_at = store.next_due_at()
        assert due_at is not None
        assert due_at > store.now() + AHEAD - timedelta(minutes=5)
        assert store.expire(unknown_grace=timedelta(0)) == 0

    def test_no_scheduler_takes_back_what_is_claimed(self, rows):
        rows.store(70)
        claims = next(rows._claims(64))
        store = wiring.job_store()
        assert store.sweep({}, lease=LEASE, decide_loss=lambda job: LOST).swept == ()
        assert Job.objects.filter(state="in_progress").count() == len(claims) == 64

    def test_transactions_are_counted(self, rows):
        assert (rows.store(1), rows.store(1001)) == (1, 2)
        assert rows.run_actions(2 * CLAIM_LIMIT + 2) == 2 * 3
        assert rows.run_mutations(70) == 70 + 1
        assert Job.objects.filter(state="success").count() == 2 * CLAIM_LIMIT + 2 + 70

    def test_rows_that_vanish_are_told_and_the_rest_is_deleted(self, rows):
        rows.store(100)
        Job.objects.all().delete()
        with pytest.raises(HelischedError, match="Nothing is left to claim"):
            rows.run_actions(64)
        assert rows.delete() == 0
        assert JobArgs.objects.count() == 0

    def test_two_benches_do_not_take_each_others_rows(self, rows):
        other = BenchRows("default")
        rows.store(10)
        other.store(10)
        rows.run_actions(10)
        other.run_actions(10)
        assert (rows.delete(), other.delete()) == (10, 10)


class TestShares:
    PROBE = Probe(round_trip=0.001, commit=0.004)

    def test_time_of_the_processor_is_not_waiting(self):
        cost = Cost("it", 100, wall=1.0, cpu=0.7, statements=100, commits=50)
        assert rounded(shares(cost, self.PROBE)) == {
            "the processor of this process": 0.7,
            "commits": 0.2,
            "round trips": 0.1,
            "the database's own work": 0.0,
        }

    def test_the_largest_share_comes_first(self):
        cost = Cost("it", 100, wall=1.0, cpu=0.1, statements=100, commits=100)
        assert next(iter(shares(cost, self.PROBE))) == "commits"
        cost = Cost("it", 100, wall=1.0, cpu=0.1, statements=10, commits=1)
        assert next(iter(shares(cost, self.PROBE))) == "the database's own work"

    def test_a_probe_slower_than_the_work_does_not_make_more_than_all_of_it(self):
        cost = Cost("it", 100, wall=0.1, cpu=0.2, statements=1000, commits=1000)
        assert sum(shares(cost, self.PROBE).values()) == pytest.approx(1)
        cost = Cost("it", 100, wall=0.1, cpu=0.05, statements=1000, commits=1000)
        assert sum(shares(cost, self.PROBE).values()) == pytest.approx(1)


def rounded(found):
    return {name: round(share, 6) for name, share in found.items()}
