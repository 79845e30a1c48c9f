"""NOTIFY and LISTEN, between real connections."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DataError, OperationalError, connection, transaction

from django_helisched import wiring
from django_helisched.driver import Driver, DriverConfig
from django_helisched.driver import connections as threads
from django_helisched.driver.events import What
from django_helisched.driver.waking import notify as notify_ear
from django_helisched.driver.waking.notify import NotifyEar, own_connection
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import NewJob
from django_helisched.stores.orm import OrmJobStore
from django_helisched.stores.orm.channel_notify import Notifications, name_of
from django_helisched.stores.words import LOOK, spelled, understood
from tests.app import jobs as bodies
from tests.driver.test_heartbeat import wait_for
from tests.driver.test_run import succeeded

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


def pid_of_this_thread() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def prepared() -> list[str]:
    """Return what is prepared on the connection of this thread."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements WHERE statement NOT LIKE '%pg_prepared%'")
        return [statement for (statement,) in cursor.fetchall()]


def test_what_it_lends_is_the_line_by_which_it_hears(ear: NotifyEar):
    ordinary, (line,) = pid_of_this_thread(), backends_that_listen()
    assert ear.by_its_line(lambda: pid_of_this_thread() == line)
    assert not ear.by_its_line(lambda: False)
    assert pid_of_this_thread() == ordinary


def test_what_is_said_while_it_lends_its_line_is_heard(ear: NotifyEar):
    def ask() -> bool:
        notify("before the answer")
        return pid_of_this_thread() > 0

    assert ear.by_its_line(ask)
    notify("after it")
    said: list[str] = []
    while len(said) < 2:
        said += ear.hear(WAIT)
    assert said == ["before the answer", "after it"]


def test_a_line_is_usable_again_and_given_back_after_an_error(ear: NotifyEar):
    def fail() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        return True

    ordinary = pid_of_this_thread()
    with pytest.raises(DataError):
        ear.by_its_line(fail)
    assert pid_of_this_thread() == ordinary
    assert ear.by_its_line(lambda: pid_of_this_thread() != ordinary)


def test_only_what_is_lent_is_changed_and_keeps_plans(ear: NotifyEar):
    own = own_connection("default")
    name_of(own)
    name_of(own)
    with own.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone() == (0,)  # a pooler may lend this one to others
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("on",)
    own.close()
    kept: list[list[str]] = []

    def claim() -> bool:
        wiring.job_store().claim(worker_id="me", limit=1, lease=timedelta(seconds=30))
        kept.append(prepared())
        return True

    for _ in range(4):
        assert ear.by_its_line(claim)
    assert not kept[0]
    assert [statement for statement in kept[3] if "helisched_job" in statement]
    assert prepared() == []


def test_after_a_slow_answer_it_plans_anew(ear: NotifyEar, monkeypatch: pytest.MonkeyPatch):
    sent: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        return execute(sql, params, many, context)

    assert ear.by_its_line(lambda: True)
    assert ear._connection is not None
    with ear._connection.execute_wrapper(watch):
        monkeypatch.setattr(notify_ear, "SLOW", 3600.0)
        assert ear.by_its_line(lambda: True)
        assert sent == []
        monkeypatch.setattr(notify_ear, "SLOW", 0.0)
        assert ear.by_its_line(lambda: True)
        assert sent == ["DISCARD PLANS"]


def test_a_closed_line_is_not_lent():
    assert not NotifyEar("default").by_its_line(lambda: True)


def test_a_driver_claims_what_it_hears_of_over_that_line(monkeypatch: pytest.MonkeyPatch):
    claimed: list[tuple[str, int]] = []
    claim = OrmJobStore.claim

    def watched(store: OrmJobStore, **given: Any) -> Any:
        claims = claim(store, **given)
        if claims:
            claimed.append((threading.current_thread().name, pid_of_this_thread()))
        return claims

    monkeypatch.setattr(OrmJobStore, "claim", watched)
    jobs, long = wiring.job_store(), timedelta(seconds=600)
    config = DriverConfig(threads=1, async_jobs=0, poll_min=long, poll_max=long, poll_net=long, fire_crons=False)
    driver = Driver(jobs, wiring.cron_store(), config, ear=NotifyEar("default"))

    def run() -> None:
        driver.run()
        threads.drop_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait_for(lambda: driver._pace.is_told and not driver._claiming.is_hungry)
        (line,) = backends_that_listen()
        now = jobs.now()
        path = "tests.app.jobs.note"
        job = NewJob(id=uuid7(), fn_path=path, args=["a"], created_at=now, due_at=now, next_run_at=now)
        jobs.enqueue([job])
        notify(spelled(LOOK, speaker="abc.1"))
        wait_for(lambda: succeeded(driver, job))
    finally:
        driver.stop()
        thread.join(20)
        bodies.seen.clear()
    assert claimed == [("helisched-listener", line)]


def end(backend: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [backend])
