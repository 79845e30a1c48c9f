"""Old rows in the database: what a step costs, what the project's own tables say to it, batches."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.models.signals import pre_delete
from django.test.utils import CaptureQueriesContext

from django_helisched.jobs.ids import first_id
from django_helisched.jobs.progress import ProgressReport
from django_helisched.jobs.retention import Keep
from django_helisched.models import Attempt, Batch, Job, JobArgs, Progress
from django_helisched.stores.orm import OrmJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START
from django_helisched.testing.contract.factories import LEASE, enqueued, running, settled, success
from django_helisched.testing.contract.pruning import cut_now, finished
from tests.app.models import Pin, Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_helisched.stores.base import Pruned

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def store(clock: ManualClock) -> OrmJobStore:
    return OrmJobStore("default", clock)


@pytest.fixture
def prune(store: OrmJobStore) -> Callable[..., Pruned]:
    return lambda **options: store.prune(cut_now(store, Keep(age=DAY), key_ttl=DAY), **options)


@pytest.fixture
def receiver() -> Iterator[list[Any]]:
    """Give the ids of jobs whose deletion a receiver of the project refuses."""
    refused: list[Any] = []

    def refuse(instance: Job, **_: object) -> None:
        if instance.pk in refused:
            raise RuntimeError("not this one")

    pre_delete.connect(refuse, sender=Job)
    yield refused
    pre_delete.disconnect(refuse, sender=Job)


def test_no_row_of_a_job_is_left(store, clock, prune):
    claim = running(store, id=first_id(clock.now()), args=["A"])
    store.progress([(claim, ProgressReport(done=1, total=2))])
    settled(store, claim, success())
    clock.advance(2 * DAY)
    assert prune().count == 1
    assert [model.objects.count() for model in (Job, JobArgs, Attempt, Progress)] == [0, 0, 0, 0]


def test_a_job_above_a_live_one_stays(store, clock, prune):
    parent = finished(store)
    child = enqueued(store, parent_id=parent.id)
    clock.advance(2 * DAY)
    assert prune().count == 0
    store.cancel(child.id)
    assert prune().ids == {parent.id}


def test_a_cancel_finds_its_way_through_finished_jobs(store, clock, prune):
    line = [running(store).id]
    for _ in range(3):
        line.append(finished(store, parent_id=line[-1]).id)
    bottom = enqueued(store, parent_id=line[-1])
    clock.advance(2 * DAY)
    assert prune().count == 0
    store.cancel(line[0])
    assert Job.objects.get(pk=bottom.id).state == "canceled"


def test_what_cascades_goes_along(store, clock, prune):
    Receipt.objects.create(job_id=finished(store).id)
    clock.advance(2 * DAY)
    answer = prune()
    assert (answer.count, answer.refused) == (1, 0)
    assert (Job.objects.count(), Receipt.objects.count()) == (0, 0)


def test_a_job_that_a_foreign_key_holds_stays_whole_and_alone(store, clock, prune):
    jobs = [finished(store, args=[number]) for number in range(3)]
    Pin.objects.create(job_id=jobs[1].id)
    clock.advance(2 * DAY)
    answer = prune()
    assert (answer.ids, answer.refused) == ({jobs[0].id, jobs[2].id}, 1)
    assert (Job.objects.get().pk, JobArgs.objects.get().args, Attempt.objects.count()) == (jobs[1].id, [1], 1)
    Pin.objects.all().delete()
    assert prune().ids == {jobs[1].id}


def test_a_job_that_a_receiver_does_not_let_go_stays_whole_and_alone(store, clock, prune, receiver):
    jobs = [finished(store) for _ in range(3)]
    receiver.append(jobs[0].id)
    clock.advance(2 * DAY)
    answer = prune()
    assert (answer.ids, answer.refused) == ({jobs[1].id, jobs[2].id}, 1)
    assert (Job.objects.get().pk, Attempt.objects.count()) == (jobs[0].id, 1)


def test_a_step_costs_the_same_whatever_the_table_holds(store, clock, prune):
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert prune(limit=5).count == 5
        return len(captured)

    for _ in range(10):
        finished(store)
    clock.advance(2 * DAY)
    few = cost()
    for number in range(60):
        enqueued(store, id=first_id(clock.now() + number * timedelta(milliseconds=1)))
        finished(store)
    assert cost() == few


def test_a_step_that_finds_nothing_is_one_statement(store, clock, prune):
    finished(store)
    with CaptureQueriesContext(connection) as captured:
        assert prune().count == 0
    assert len(captured) == 1


class TestBatches:
    @pytest.fixture
    def batch(self, clock: ManualClock) -> Batch:
        now = clock.now()
        return Batch.objects.create(id=first_id(now), created_at=now, completed_at=now)

    def test_an_open_batch_keeps_its_jobs(self, store, clock, prune, batch):
        Batch.objects.update(completed_at=None)
        job = finished(store, batch_id=batch.pk)
        clock.advance(2 * DAY)
        assert prune().count == 0
        Batch.objects.update(completed_at=clock.now())
        assert prune().ids == {job.id}

    def test_a_batch_goes_once_its_jobs_are_gone(self, store, clock, prune, batch):
        finished(store, batch_id=batch.pk)
        clock.advance(2 * DAY)
        assert store.prune_batches(clock.now() - DAY).count == 0
        prune()
        assert store.prune_batches(clock.now() - DAY, pretend=True).count == 1
        assert store.prune_batches(clock.now() - DAY).count == 1
        assert not Batch.objects.exists()

    def test_a_batch_that_is_open_or_young_stays(self, store, clock, batch):
        clock.advance(DAY)
        assert store.prune_batches(clock.now() - DAY).count == 0
        Batch.objects.update(completed_at=None)
        clock.advance(DAY)
        assert store.prune_batches(clock.now() - DAY).count == 0

    def test_a_job_that_still_runs_keeps_its_batch(self, store, clock, batch):
        claim = running(store, batch_id=batch.pk)
        clock.advance(2 * DAY)
        store.heartbeat([claim], lease=LEASE)
        assert store.prune_batches(clock.now() - DAY).count == 0
