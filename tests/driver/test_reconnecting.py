"""What a driver does anew once the database is back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_helisched import wiring
from django_helisched.driver import connections
from django_helisched.driver.events import What
from django_helisched.jobs.job import State
from django_helisched.stores.clock import TRIES
from django_helisched.stores.orm import database_clock
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from django_helisched.driver import Driver


def queries_after_a_reconnect() -> int:
    store = wiring.job_store()
    store.now()
    store.now()
    connection.close()
    connection.ensure_connection()
    with CaptureQueriesContext(connection) as queries:
        store.now()
        store.now()
    return len(queries)


@pytest.mark.django_db(transaction=True)
def test_a_process_with_a_driver_reads_the_time_anew_with_every_connection(driver: Driver):
    with wiring.replaced(clock=database_clock("default")):
        assert queries_after_a_reconnect() == 0
        wiring.add_listener(driver.wake)
        try:
            # Once, and once more where the reading was slow; what follows is carried.
            assert 1 <= queries_after_a_reconnect() <= TRIES
        finally:
            wiring.remove_listener(driver.wake)


def test_an_end_that_calls_back_waits_for_a_clock_that_is_away(make_driver, store, jobs):
    away = [OperationalError("gone"), OperationalError("gone")]

    def observe(event: Any) -> None:
        if event.what is What.JOB_STARTED and away:
            store.fail("now", away.pop(), away.pop())

    job = bodies.tell.using(on_complete=bodies.told, context="c").enqueue("a")
    driver: Driver = make_driver(observe=observe)
    driver.tick()
    assert jobs.get(job.id).state == State.SUCCESS
    driver.tick()
    assert ("c", "success") in bodies.seen


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("was_lost", [True, False])
def test_once_a_thread_has_lost_the_database_the_others_connect_anew(was_lost: bool):
    kept: list[bool] = []
    met, went_on = threading.Event(), threading.Event()

    def seat() -> None:
        with connections.tidy("default"):
            connection.ensure_connection()
        used = connection.connection
        met.set()
        went_on.wait(20)
        with connections.tidy("default"):
            connection.ensure_connection()
            kept.append(connection.connection is used)
        connections.drop_all()

    thread = threading.Thread(target=seat)
    thread.start()
    met.wait(20)
    connections.drop("default", was_lost=was_lost)
    went_on.set()
    thread.join(20)
    assert kept == [not was_lost]
