"""cancel and requeue wait two seconds for a row that somebody holds, and then say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from django_helisched.exceptions import Busy
from django_helisched.jobs.job import State
from django_helisched.models import Job
from django_helisched.stores.clock import elapsed
from django_helisched.stores.orm.connection import PATIENCE
from django_helisched.testing.contract.factories import enqueued, read, running, settled, state_of, success
from tests.app.models import Ledger
from tests.races.stage import has_one_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from django_helisched.stores.orm import OrmJobStore
    from tests.races.stage import Stage

# A busy machine may be late; a database's own patience is twenty seconds and more, or has no end.
LATE = 4  # seconds


@pytest.fixture
def watch() -> Iterator[None]:
    """Fail a test that takes much longer than the patience it tests."""
    began = elapsed()
    yield
    assert elapsed() - began < PATIENCE + LATE


def holding(job_id: UUID) -> Callable[[], int]:
    return lambda: Job.objects.filter(pk=job_id).update(name="held")


def lock_wait() -> object:
    """Return how long this connection waits for a lock, as the database tells."""
    asks = {
        "postgresql": "SELECT current_setting('lock_timeout')",
        "mysql": "SELECT @@SESSION.innodb_lock_wait_timeout",
        "sqlite": "PRAGMA busy_timeout",
    }
    with connection.cursor() as cursor:
        cursor.execute(asks[connection.vendor])
        return cursor.fetchone()[0]


def ended(store: OrmJobStore) -> UUID:
    claim = running(store)
    settled(store, claim, success())
    return claim.id


@pytest.mark.usefixtures("watch")
def test_a_cancel_that_waits_in_vain_says_so_and_changes_nothing(stage: Stage, store):
    job = enqueued(store)
    before = lock_wait()
    holder = stage.holds_open(holding(job.id))
    with pytest.raises(Busy, match="in use by another transaction"):
        store.cancel(job.id)
    assert lock_wait() == before
    holder.finish()
    assert store.cancel(job.id)
    assert lock_wait() == before


@pytest.mark.usefixtures("watch")
def test_a_requeue_that_waits_in_vain_says_so_and_changes_nothing(stage: Stage, store):
    job = ended(store)
    holder = stage.holds_open(holding(job))
    with pytest.raises(Busy):
        store.requeue(job)
    holder.finish()
    assert (state_of(store, job), read(store, job).name) == (State.SUCCESS, "held")
    assert store.requeue(job)


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("verb", ["cancel", "requeue"])
def test_the_callers_transaction_stays_usable(stage: Stage, store, verb):
    job = enqueued(store).id if verb == "cancel" else ended(store)
    before = lock_wait()
    if has_one_writer():
        # A transaction that writes is the only one that does: nobody else can hold the row.
        with transaction.atomic():
            Ledger.objects.create(marker="before")
            holder = stage.enter(holding(job)).waits()
            assert getattr(store, verb)(job)
            Ledger.objects.create(marker="after")
        holder.result()
        assert Ledger.objects.count() == 2
        return
    holder = stage.holds_open(holding(job))
    with transaction.atomic():
        Ledger.objects.create(marker="before")
        with pytest.raises(Busy):
            getattr(store, verb)(job)
        assert lock_wait() == before
        Ledger.objects.create(marker="after")
    holder.finish()
    assert Ledger.objects.count() == 2
    assert getattr(store, verb)(job)


@pytest.mark.usefixtures("watch")
def test_a_cancel_whose_descendant_is_held_cancels_nobody(stage: Stage, store):
    root = enqueued(store)
    child = enqueued(store, parent_id=root.id)
    holder = stage.holds_open(holding(child.id))
    with pytest.raises(Busy):
        store.cancel(root.id)
    holder.finish()
    assert [state_of(store, job.id) for job in (root, child)] == [State.PENDING] * 2
    assert store.cancel(root.id)
    assert [state_of(store, job.id) for job in (root, child)] == [State.CANCELED] * 2


def test_a_cancel_gets_a_row_that_is_let_go_in_time(stage: Stage, store):
    job = enqueued(store)
    holder = stage.holds_open(holding(job.id))
    cancel = stage.enter(lambda: store.cancel(job.id)).waits()
    holder.finish()
    assert cancel.result() is True
    assert (state_of(store, job.id), read(store, job.id).name) == (State.CANCELED, "held")
