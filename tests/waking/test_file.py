"""Datagrams beside a SQLite file, and a glance at the file."""

from __future__ import annotations

import socket
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection, connections, transaction

from django_helisched import wiring
from django_helisched.driver.waking.file import FileEar
from django_helisched.stores.orm.channel_datagram import LONGEST_PATH, Datagrams, file_of, folder_of
from django_helisched.stores.words import LOOK, spelled, understood
from tests.app import jobs as bodies
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.waking.conftest import Listener

pytestmark = pytest.mark.django_db(transaction=True)

WAIT = 20.0  # seconds: an end to a hang
RARELY = 3600.0  # seconds between two glances: whatever is heard, was heard as a word
WORD = spelled(LOOK, speaker="abc.1")


@pytest.fixture
def file() -> Path:
    found = file_of(connection)
    assert found is not None
    return found


@pytest.fixture
def open_ear(file: Path) -> Iterator[Callable[..., FileEar]]:
    """Open ears on the database of the test; they glance rarely unless told."""
    ears: list[FileEar] = []

    def make(glance_every: float = RARELY, at: Path = file) -> FileEar:
        ear = FileEar(at, "default", glance_every)
        ear.open()
        ear.hear(0)  # the first glance
        ears.append(ear)
        return ear

    yield make
    for ear in ears:
        ear.close()
    assert not folder_of(file).exists()


def sockets(file: Path) -> list[Path]:
    return sorted(folder_of(file).iterdir())


def test_an_enqueue_is_heard_by_everybody_once_it_is_committed(open_ear):
    ears = [open_ear(), open_ear()]
    with wiring.replaced():
        with transaction.atomic():
            bodies.note.enqueue("a")
            assert [ear.hear(0) for ear in ears] == [[], []]
        for ear in ears:
            (word,) = ear.hear(WAIT)
            assert understood(word) is not None


def test_another_process_is_heard(open_ear, child_env):
    ear = open_ear()
    enqueue = "import django; django.setup(); from tests.app import jobs; jobs.note.enqueue('a')"
    subprocess.run([sys.executable, "-c", enqueue], env=child_env, cwd=Path(__file__).parents[2], check=True)
    (word,) = ear.hear(WAIT)
    assert understood(word) is not None


def test_whoever_writes_without_a_word_is_seen_by_the_glance(open_ear, file: Path):
    ear = open_ear(glance_every=0.01)
    with sqlite3.connect(file) as other:
        other.execute("UPDATE helisched_job SET name = name")
        other.execute("PRAGMA user_version = 1")
    other.close()
    (word,) = ear.hear(WAIT)
    assert understood(word) is not None


def test_a_socket_whose_process_was_killed_is_removed_by_whoever_speaks(open_ear, file: Path):
    ear = open_ear()
    stale = folder_of(file) / "0badcafe"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(stale))
    Datagrams(folder_of(file)).send(WORD)
    assert not stale.exists()
    assert ear.hear(WAIT) == [WORD]


def test_what_is_no_socket_of_ours_is_left_alone(open_ear, file: Path):
    ear = open_ear()
    others = [folder_of(file) / "0badcafe", folder_of(file) / "README"]
    for other in others:
        other.write_text("kept")
    Datagrams(folder_of(file)).send(WORD)
    assert [other.read_text() for other in others] == ["kept", "kept"]
    assert ear.hear(WAIT) == [WORD]
    for other in others:
        other.unlink()


def test_a_full_socket_costs_the_caller_nothing(open_ear, file: Path):
    ear = open_ear()
    channel = Datagrams(folder_of(file))
    for _ in range(3000):
        channel.send(WORD)
    assert WORD in ear.hear(WAIT)


def test_where_nobody_listens_nothing_happens(file: Path):
    Datagrams(folder_of(file)).send(WORD)
    assert not folder_of(file).exists()


def test_who_may_write_the_file_may_speak(open_ear, file: Path):
    file.chmod(0o664)
    open_ear()
    (path,) = sockets(file)
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o775


def test_a_path_that_is_too_long_for_a_socket_leaves_the_glance(listener: Listener, tmp_path: Path, file: Path):
    deep = tmp_path / ("d" * LONGEST_PATH) / "db.sqlite3"
    deep.parent.mkdir()
    deep.touch()
    with listener.listen(FileEar(deep, "default", 0.01)):
        listener.settled()
        bodies.note.enqueue("a")
        wait_for(lambda: listener.times() >= 1)
    (said,) = listener.events
    assert said.text == (
        f"Wake-up: polling, since the path of a socket beside the database file would be longer than {LONGEST_PATH} "
        "bytes."
    )


def test_it_says_that_it_hears_datagrams(listener: Listener, file: Path):
    with listener.listen(FileEar(file, "default", RARELY)):
        listener.settled()
        Datagrams(folder_of(file)).send(WORD)
        wait_for(lambda: listener.times() == 2)
    assert [event.text for event in listener.events] == ["Wake-up: datagram."]
    assert not folder_of(file).exists()


def test_an_interruption_ends_the_wait(open_ear):
    ear = open_ear()
    ear.interrupt()
    assert ear.hear(600) == []


@pytest.mark.parametrize("name", ["", ":memory:", "file:shared?mode=memory&cache=shared"])
def test_a_database_that_is_no_file_has_no_socket(name: str):
    other = type(connections["default"])({**connection.settings_dict, "NAME": name}, "default")
    assert file_of(other) is None
    assert Datagrams.beside(other) is None
