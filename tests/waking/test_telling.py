"""Whatever a store makes due or cancels is told, once it is committed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import transaction

from django_helisched import scheduler, wiring
from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.stores.orm import OrmCronStore, OrmJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import factories
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = timedelta(seconds=30)


class Told(list[str]):
    """A teller that keeps what it is told."""

    def something_is_due(self) -> None:
        self.append("due")

    def something_is_canceled(self) -> None:
        self.append("canceled")

    def taken(self) -> set[str]:
        """Return what was told since the last time."""
        taken = set(self)
        self.clear()
        return taken


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(factories.START)


@pytest.fixture
def store(told: Told, clock: ManualClock) -> Iterator[OrmJobStore]:
    """Give the job store that enqueue uses, which tells ``told``."""
    store = OrmJobStore("default", clock, teller=told)
    with wiring.replaced(store, OrmCronStore("default", clock, teller=told)):
        yield store
    bodies.seen.clear()


def test_an_enqueue_is_told_after_the_commit_and_a_rollback_is_not(store: OrmJobStore, told: Told):
    with transaction.atomic():
        bodies.note.enqueue("a")
        with transaction.atomic():
            bodies.note.run_after(3600, "b")
        assert told == []
    assert told == ["due"]
    told.clear()
    with transaction.atomic():
        bodies.note.enqueue("c")
        transaction.set_rollback(True)
    assert told == []


def test_an_older_job_that_is_returned_is_not_told(store: OrmJobStore, told: Told):
    bodies.note.using(idempotency_key="k").enqueue("a")
    assert told.taken() == {"due"}
    bodies.note.using(idempotency_key="k").enqueue("a")
    assert told.taken() == set()


def test_under_manual_transactions_nothing_is_told(store: OrmJobStore, told: Told):
    transaction.set_autocommit(False)
    try:
        bodies.note.enqueue("a")
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert told == []


def test_cancel_and_requeue_are_told_where_they_change_something(store: OrmJobStore, told: Told):
    job = bodies.note.enqueue("a")
    told.clear()
    assert not scheduler.requeue(job)
    assert told.taken() == set()
    scheduler.cancel(job)
    assert told.taken() == {"canceled", "due"}
    assert not scheduler.cancel(job)
    assert told.taken() == set()
    scheduler.requeue(job)
    assert told.taken() == {"due"}


def test_a_queue_that_opens_is_told(store: OrmJobStore, told: Told):
    store.pause_queue("mail")
    assert told.taken() == set()
    assert store.resume_queue("mail")
    assert told.taken() == {"due"}
    store.pause_queue("mail", until=store.now() + LEASE)
    assert told.taken() == {"due"}


@pytest.mark.parametrize(
    ("outcome", "heard"),
    [
        (factories.success(), set()),
        (factories.failure(), set()),
        (factories.retry(), {"due"}),
        (factories.canceled(), {"due", "canceled"}),
    ],
    ids=["success", "failure", "retry", "canceled"],
)
def test_an_end_is_told_where_others_have_something_to_learn(store: OrmJobStore, told: Told, outcome, heard):
    claim = factories.running(store)
    told.clear()
    factories.settled(store, claim, outcome)
    assert told.taken() == heard


def test_a_follow_up_is_told(store: OrmJobStore, told: Told):
    bodies.note.using(on_complete=bodies.told).enqueue("a")
    claim = factories.claimed(store)
    told.clear()
    factories.settled(store, claim, factories.success())
    assert told.taken() == {"due"}


def test_what_was_settled_too_late_is_not_told(store: OrmJobStore, told: Told):
    claim = factories.running(store)
    store.cancel(claim.id, force=True)
    told.clear()
    factories.settled(store, claim, factories.retry())
    assert told.taken() == set()


def test_what_is_given_back_or_held_no_longer_is_told(store: OrmJobStore, told: Told):
    claim = factories.running(store, fn_path="gone.away")
    told.clear()
    store.release([claim])
    assert told.taken() == {"due"}
    store.hold_unknown([factories.claimed(store)])
    assert told.taken() == set()
    store.unhold_known(["gone.away"])
    assert told.taken() == {"due"}
    store.unhold_known(["gone.away"])
    assert told.taken() == set()


def test_what_is_swept_is_told(store: OrmJobStore, told: Told, clock: ManualClock):
    factories.running(store)
    told.clear()
    store.sweep({}, lease=LEASE, decide_loss=factories.loss)
    assert told.taken() == set()
    factories.swept(store, clock)
    assert told.taken() == {"due"}


def test_a_cron_that_fires_or_changes_is_told(store: OrmJobStore, told: Told, clock: ManualClock):
    cron = scheduler.crons.create("every minute", bodies.note, ["a"], every=60)
    assert told.taken() == {"due"}
    scheduler.crons.pause(cron)
    assert told.taken() == {"due"}
    assert not scheduler.crons.pause(cron)
    assert told.taken() == set()
    scheduler.crons.resume(cron)
    clock.advance(61)
    told.clear()
    Driver(store, wiring.cron_store(), DriverConfig(threads=0), seats=InlineSeats(0)).tick()
    assert told.taken() == {"due"}


def test_a_cancel_reaches_what_runs_in_this_process(store: OrmJobStore):
    """The stores of a project tell the drivers beside them without any channel."""
    heard: list[str] = []

    def hurry() -> None:
        heard.append("hurry")

    wiring.add_canceler(hurry)
    try:
        with wiring.replaced():
            job = bodies.note.enqueue("a")
            with transaction.atomic():
                scheduler.cancel(job)
                assert heard == []
            assert heard == ["hurry"]
    finally:
        wiring.remove_canceler(hurry)
