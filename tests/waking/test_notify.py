"""NOTIFY and LISTEN, between real connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection, transaction

from django_helisched import wiring
from django_helisched.driver import connections as threads
from django_helisched.driver.events import What
from django_helisched.driver.waking.notify import NotifyEar, own_connection
from django_helisched.stores.orm.channel_notify import Notifications
from django_helisched.stores.words import LOOK, spelled, understood
from tests.app import jobs as bodies
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.waking.conftest import Listener

pytestmark = pytest.mark.django_db(transaction=True)

WAIT = 20.0  # seconds: an end to a hang


@pytest.fixture
def ear() -> Iterator[NotifyEar]:
    ear = NotifyEar("default")
    ear.open()
    yield ear
    ear.close()


def heard(ear: NotifyEar, seconds: float = WAIT) -> list[str]:
    return [word.kind for text in ear.hear(seconds) if (word := understood(text))]


def notify(text: str, channel: str = "") -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify('helisched_' || 'helisched_job'::regclass::oid || %s, %s)", [channel, text])


def backends_that_listen() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%%'")
        return [pid for (pid,) in cursor.fetchall()]


def test_an_enqueue_is_heard_once_it_is_committed(ear: NotifyEar):
    with wiring.replaced():
        with transaction.atomic():
            bodies.note.enqueue("a")
            assert heard(ear, 0.2) == []
        assert heard(ear) == [LOOK]


def test_an_enqueue_that_is_rolled_back_is_never_heard(ear: NotifyEar):
    with wiring.replaced():
        with transaction.atomic():
            bodies.note.enqueue("a")
            transaction.set_rollback(True)
        notify("something else")
        assert ear.hear(WAIT) == ["something else"]


def test_nothing_is_sent_inside_a_transaction(ear: NotifyEar):
    """A hook that a test calls in its own transaction must not tell of what may never commit."""
    with transaction.atomic():
        Notifications("default").send(spelled(LOOK))
    notify("something else")
    assert ear.hear(WAIT) == ["something else"]


def test_another_table_has_another_channel(ear: NotifyEar):
    notify("to others", channel="0")
    notify("to us")
    assert ear.hear(WAIT) == ["to us"]


def test_an_interruption_ends_the_wait(ear: NotifyEar):
    ear.interrupt()
    assert ear.hear(600) == []


def test_a_line_that_the_server_ends_is_noticed(ear: NotifyEar):
    (backend,) = backends_that_listen()
    end(backend)
    ear.hear(WAIT)  # the server says goodbye
    with pytest.raises(OperationalError):
        ear.hear(WAIT)


def test_a_line_to_a_server_that_was_lost_is_given_up(ear: NotifyEar):
    threads.drop("default", was_lost=True)
    with pytest.raises(OperationalError, match="the database was lost"):
        ear.hear(WAIT)


def test_it_listens_outside_of_the_pool_and_in_autocommit():
    settings: dict[str, Any] = connection.settings_dict
    before = settings["OPTIONS"], settings["AUTOCOMMIT"]
    settings["OPTIONS"], settings["AUTOCOMMIT"] = {**before[0], "pool": True, "keepalives_idle": 7}, False
    try:
        own = own_connection("default")
        assert own.settings_dict["AUTOCOMMIT"] is True
        assert "pool" not in own.settings_dict["OPTIONS"]
        assert own.settings_dict["OPTIONS"]["keepalives_idle"] == 7
        assert own.settings_dict["NAME"] == settings["NAME"]
    finally:
        settings["OPTIONS"], settings["AUTOCOMMIT"] = before


def test_it_hears_again_after_its_line_was_ended(listener: Listener):
    with listener.listen(NotifyEar("default")):
        listener.settled()
        (backend,) = backends_that_listen()
        end(backend)
        wait_for(lambda: listener.events.of(What.WAKEUP_LOST))
        listener.settled()
        notify(spelled(LOOK, speaker="abc.1"))
        wait_for(lambda: listener.times() >= 2)
        assert backends_that_listen() != [backend]


def test_the_test_of_a_line_leaves_no_second_connection_open(listener: Listener):
    with listener.listen(NotifyEar("default")):
        listener.settled()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            )
            assert cursor.fetchone() == (1,)


def end(backend: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [backend])
