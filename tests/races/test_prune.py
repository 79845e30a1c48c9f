"""Old rows are deleted while others want them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Enqueued, State
from django_helisched.jobs.retention import Keep
from django_helisched.models import Job, JobArgs
from django_helisched.testing.contract.factories import all_jobs, enqueued, new_job, state_of
from django_helisched.testing.contract.pruning import cut_now, finished
from tests.app.models import Ledger, Receipt
from tests.races.stage import has_one_writer, pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.jobs.job import JobSnapshot
    from django_helisched.stores.base import Pruned
    from django_helisched.stores.orm import OrmJobStore
    from tests.races.stage import Actor, Stage

DAY = timedelta(days=1)


@pytest.fixture
def old(store: OrmJobStore, clock: Any) -> JobSnapshot:
    """Give a job that may go, with a new key: InnoDB locks more than the row where a deleted one is not purged."""
    job = finished(store, args=["old"], idempotency_key=uuid7().hex)
    clock.advance(2 * DAY)
    return job


def pruning(store: OrmJobStore) -> Callable[[], Pruned]:
    cut = cut_now(store, Keep(age=DAY), key_ttl=DAY)
    return lambda: store.prune(cut)


def ordering(store: OrmJobStore, old: JobSnapshot, *, stops: bool = False) -> Callable[[], Enqueued]:
    """Return a caller's transaction: a row of its own, an enqueue with the old job's key, one more row."""
    new = new_job(store, args=["new"], idempotency_key=old.idempotency_key)

    def run() -> Enqueued:
        with transaction.atomic():
            Ledger.objects.create(marker="before")
            [made] = store.enqueue([new])
            if stops:
                pause()
            Ledger.objects.create(marker="after")
            return made

    return run


def when_its_key_is_taken() -> Callable[[str], bool]:
    """Stop an enqueue that was told so, before it looks who has the key."""
    tried: list[str] = []

    def stop(sql: str) -> bool:
        if "INSERT INTO" in sql and "helisched_job" in sql:
            tried.append(sql)
        return bool(tried) and sql.startswith("SELECT")

    return stop


def skips_or_waits(stage: Stage, work: Callable[[], Pruned]) -> Actor[Pruned]:
    """Return a prune that leaves alone what another holds, or waits where there is one lock for all."""
    actor = stage.enter(work)
    if has_one_writer():
        return actor.waits()
    assert actor.result().count == 0
    return actor


def markers() -> list[str]:
    return sorted(Ledger.objects.values_list("marker", flat=True))


def test_an_enqueue_waits_to_learn_whether_the_job_with_its_key_is_pruned(stage: Stage, store, old):
    prune = stage.holds_open(pruning(store))
    enqueue = stage.enter(ordering(store, old)).waits()
    assert prune.finish().ids == {old.id}
    made = enqueue.result()
    assert made.created
    assert [job.id for job in all_jobs(store)] == [made.job.id]
    assert JobArgs.objects.get().args == ["new"]
    assert markers() == ["after", "before"]


def test_where_the_prune_is_undone_the_enqueue_gets_the_older_job(stage: Stage, store, old):
    prune = stage.holds_open(pruning(store))
    enqueue = stage.enter(ordering(store, old)).waits()
    prune.break_off()
    made = enqueue.result()
    assert (made.created, made.job) == (False, old)
    assert store.args_of(old.id)["args"] == ["old"]
    assert markers() == ["after", "before"]


def test_a_job_that_is_pruned_between_two_looks_of_an_enqueue_is_no_error(stage: Stage, store, old):
    enqueue = stage.enter(ordering(store, old), when_its_key_is_taken()).stands()
    prune = stage.enter(pruning(store))
    if has_one_writer():
        prune.waits()
        made = enqueue.finish()
        prune.result()
    else:
        prune.result()
        made = enqueue.finish()
    assert markers() == ["after", "before"]
    if made.created:
        assert [job.id for job in all_jobs(store)] == [made.job.id]
        assert store.args_of(made.job.id)["args"] == ["new"]
    else:
        assert made.job == old
        assert not Job.objects.exclude(pk=old.id).exists()


def test_an_enqueue_that_was_given_the_older_job_goes_on_whatever_a_prune_does(stage: Stage, store, old):
    enqueue = stage.enter(ordering(store, old, stops=True)).stands()
    prune = stage.enter(pruning(store))
    if has_one_writer():
        prune.waits()
    else:
        prune.result()
    made = enqueue.finish()
    assert (made.created, made.job) == (False, old)
    assert prune.result().count == 1 - len(all_jobs(store))
    assert markers() == ["after", "before"]


def test_a_job_that_is_being_requeued_is_left_alone(stage: Stage, store, old):
    requeue = stage.holds_open(lambda: store.requeue(old.id))
    prune = skips_or_waits(stage, pruning(store))
    assert requeue.finish()
    assert prune.result().count == 0
    assert state_of(store, old.id) == State.PENDING


def test_a_prune_that_saw_a_job_before_it_was_requeued_leaves_it_alone(stage: Stage, store, old):
    prune = stage.about_to_write(pruning(store))
    assert store.requeue(old.id)
    assert prune.finish().count == 0
    assert state_of(store, old.id) == State.PENDING
    assert store.args_of(old.id)["args"] == ["old"]


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
def test_a_requeue_waits_to_learn_whether_its_job_is_pruned(stage: Stage, store, old, commits):
    prune = stage.holds_open(pruning(store))
    requeue = stage.enter(lambda: store.requeue(old.id)).waits()
    if commits:
        prune.finish()
    else:
        prune.break_off()
    assert requeue.result() is not commits
    assert [job.state for job in all_jobs(store)] == ([] if commits else [State.PENDING])


def test_a_child_that_is_made_while_its_parent_is_pruned_runs(stage: Stage, store, old):
    child = stage.holds_open(lambda: enqueued(store, parent_id=old.id))
    prune = stage.enter(pruning(store))
    if has_one_writer():
        prune.waits()
        made = child.finish()
        assert prune.result().count == 0
    else:
        assert prune.result().count == 1
        made = child.finish()
    assert state_of(store, made.id) == State.PENDING
    assert store.cancel(made.id)


def test_a_row_of_the_projects_own_that_points_at_a_job_is_not_waited_for(stage: Stage, store, old):
    def point_at_it() -> None:
        # Django's foreign keys are checked at the commit where a database can wait so long.
        if connection.features.supports_deferrable_unique_constraints:
            connection.cursor().execute("SET CONSTRAINTS ALL IMMEDIATE")
        Receipt.objects.create(job_id=old.id)

    receipt = stage.holds_open(point_at_it)
    prune = skips_or_waits(stage, pruning(store))
    receipt.finish()
    prune.result()
    # With on_delete=CASCADE both go, or both stay.
    assert Receipt.objects.count() == len(all_jobs(store))


def test_two_prunes_at_once_delete_each_row_once(stage: Stage, store, old):
    first = stage.holds_open(pruning(store))
    second = skips_or_waits(stage, pruning(store))
    assert first.finish().count == 1
    assert second.result().count == 0
    assert not all_jobs(store)
