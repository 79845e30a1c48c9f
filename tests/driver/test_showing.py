"""Where a status is shown: probes over HTTP, a file, systemd's socket."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_helisched.driver.notify import Notifier, notifier
from django_helisched.driver.probes import answering
from django_helisched.driver.pulse import HealthFile, Shown, showing
from django_helisched.driver.vitals import Status
from tests.crash.fleet import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

READY = Status(is_ready=True, was_ready=True, text="ready", in_flight=2, seats=4)
STARTING = Status(text="starting", seats=4)
AWAY = Status(was_ready=True, text="the database does not answer", seats=4)
WEDGED = Status(is_live=False, was_ready=True, text="the loop has not moved for 95 s", seats=4)
GOING = Status(was_ready=True, is_stopping=True, text="finishing what runs", in_flight=1, seats=4)


class Teller:
    """A status that a test changes."""

    def __init__(self, status: Status = READY) -> None:
        self.status = status

    def __call__(self) -> Status:
        return self.status


@pytest.fixture
def teller() -> Teller:
    return Teller()


def asked(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


class TestProbes:
    @pytest.mark.parametrize(
        ("status", "live", "ready"),
        [(READY, 200, 200), (STARTING, 200, 503), (AWAY, 200, 503), (WEDGED, 503, 503), (GOING, 200, 503)],
    )
    def test_each_status_has_its_codes(self, teller: Teller, status: Status, live: int, ready: int):
        teller.status = status
        with answering("127.0.0.1", 0, teller) as port:
            assert asked(port, "/live")[0] == live
            code, body = asked(port, "/ready")
        assert code == ready
        assert json.loads(body) == status.facts()

    def test_a_query_string_and_head_are_understood_and_nothing_else(self, teller: Teller):
        with answering("127.0.0.1", 0, teller) as port:
            assert asked(port, "/live?verbose")[0] == 200
            assert asked(port, "/live", "HEAD") == (200, b"")
            assert asked(port, "/") == (404, b'{"error": "Ask for /live or /ready."}\n')
            assert asked(port, "/live", "POST")[0] == 501

    def test_a_client_that_says_nothing_keeps_nobody_waiting(self, teller: Teller):
        with answering("127.0.0.1", 0, teller) as port, socket.create_connection(("127.0.0.1", port)):
            assert asked(port, "/live")[0] == 200

    def test_a_port_that_is_taken_is_one_sentence(self, teller: Teller):
        with (
            answering("127.0.0.1", 0, teller) as port,
            pytest.raises(ImproperlyConfigured, match=rf"--health-port {port} on 127.0.0.1 cannot be opened: Address"),
            answering("127.0.0.1", port, teller),
        ):
            pass

    def test_it_is_closed_behind_the_block(self, teller: Teller):
        with answering("127.0.0.1", 0, teller) as port:
            pass
        with pytest.raises(ConnectionRefusedError):
            asked(port, "/live")


class TestFile:
    def test_it_is_there_while_the_block_runs_and_says_how_it_is(self, teller: Teller, tmp_path: Path):
        path = tmp_path / "health"
        with showing(teller, Shown(file=path)):
            assert json.loads(path.read_text()) == READY.facts()
            teller.status = AWAY
            wait_until(lambda: json.loads(path.read_text()) == AWAY.facts(), "the file is written anew")
        assert list(tmp_path.iterdir()) == []

    def test_a_wedged_process_leaves_it_to_grow_old(self, tmp_path: Path):
        path = tmp_path / "health"
        file = HealthFile(path)
        file(READY)
        before = path.stat().st_mtime_ns
        file(WEDGED)
        assert path.stat().st_mtime_ns == before
        file.close()

    def test_a_place_that_cannot_be_written_is_one_sentence(self, teller: Teller, tmp_path: Path):
        path = tmp_path / "nowhere" / "health"
        with (
            pytest.raises(ImproperlyConfigured, match=f"--health-file {path} cannot be written: No such file"),
            showing(teller, Shown(file=path)),
        ):
            pass


@contextmanager
def manager(address: str) -> Iterator[socket.socket]:
    """Be systemd: give the socket to which a service reports."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind("\0" + address[1:] if address.startswith("@") else address)
        bound.settimeout(60)
        yield bound


def received(bound: socket.socket) -> list[str]:
    return bound.recv(4096).decode().split("\n")


@pytest.fixture
def address() -> Iterator[str]:
    # Not tmp_path: the name of a socket has 107 characters at most.
    with tempfile.TemporaryDirectory() as directory:
        yield f"{directory}/notify"


class TestSystemd:
    def test_nothing_is_told_where_nobody_asks(self):
        assert notifier({}) is None
        assert notifier({"NOTIFY_SOCKET": "vsock:2:1234"}) is None

    def test_each_thing_is_told_once_and_the_watchdog_each_time(self, address: str):
        with manager(address) as bound:
            told = Notifier(address, 10.0)
            told(STARTING)
            assert received(bound) == ["STATUS=starting, 0 of 4 seats taken", "WATCHDOG=1"]
            told(READY)
            assert received(bound) == ["STATUS=ready, 2 of 4 seats taken", "READY=1", "WATCHDOG=1"]
            told(READY)
            assert received(bound) == ["WATCHDOG=1"]
            told(GOING)
            assert received(bound) == ["STATUS=finishing what runs, 1 of 4 seats taken", "STOPPING=1", "WATCHDOG=1"]
            told.close()

    def test_a_process_that_waits_for_the_database_is_up(self, address: str):
        with manager(address) as bound:
            told = Notifier(address, None)
            told(AWAY)
            assert received(bound) == ["STATUS=the database does not answer, 0 of 4 seats taken", "READY=1"]
            told.close()

    def test_a_manager_that_is_gone_or_does_not_read_is_no_error(self, address: str):
        told = Notifier(address, 10.0)
        told(READY)
        with manager(address):
            for number in range(5_000):
                told(Status(text=str(number)))
        told.close()

    def test_the_environment_says_where_and_children_are_not_told(self, address: str):
        environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid()), "X": "y"}
        told = notifier(environ)
        assert told is not None
        assert told.watchdog == 30.0
        assert environ == {"X": "y"}
        told.close()

    @pytest.mark.parametrize("usec", ["", "0", "x"])
    def test_a_watchdog_that_is_none_is_not_fed(self, address: str, usec: str):
        told = notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": usec})
        assert told is not None
        assert told.watchdog is None
        told.close()

    def test_the_watchdog_of_another_process_is_not_fed(self, address: str):
        told = notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"})
        assert told is not None
        assert told.watchdog is None
        told.close()

    def test_the_whole_life_of_a_service_by_an_abstract_address(self, teller: Teller, monkeypatch: Any):
        abstract = f"@helisched-{os.getpid()}"
        monkeypatch.setenv("NOTIFY_SOCKET", abstract)
        monkeypatch.setenv("WATCHDOG_USEC", "1000000")
        teller.status = STARTING
        with manager(abstract) as bound:
            with showing(teller, Shown()):
                assert received(bound) == ["STATUS=starting, 0 of 4 seats taken", "WATCHDOG=1"]
                teller.status = READY
                wait_until(lambda: "READY=1" in received(bound), "it is said to be ready")
                # The status says nothing new, so this one is the watchdog's.
                assert received(bound) == ["WATCHDOG=1"]
                teller.status = GOING
            wait_until(lambda: "STOPPING=1" in received(bound), "it is said to stop")
        assert "NOTIFY_SOCKET" not in os.environ


def test_a_wedged_process_does_not_feed_the_watchdog(address: str):
    with manager(address) as bound:
        told = Notifier(address, 10.0)
        told(WEDGED)
        assert received(bound) == ["STATUS=the loop has not moved for 95 s, 0 of 4 seats taken"]
        told(WEDGED)
        told(READY)
        assert received(bound)[0] == "STATUS=ready, 2 of 4 seats taken"
        told.close()
