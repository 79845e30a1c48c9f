"""A process under a supervisor: it takes orders from it, reports to it, and drains once it is gone.

Both go over one socket. Its end is the end of the supervisor, however that came.
Signals that reach this process directly (systemd sends one to every process of a
service) only mean what the supervisor's first order means: finish.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ImproperlyConfigured

from django_helisched.driver.events import DriverEvent, What, log_event
from django_helisched.driver.signals import STOPPING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from django_helisched.driver.driver import Driver
    from django_helisched.driver.vitals import Status

FINISH: Final = b"f"
LEAVE: Final = b"l"  # at once


class Link:
    """This process's end of the socket. Calling it reports a status."""

    def __init__(self, text: str) -> None:
        """Take over what ``--child NUMBER:DESCRIPTOR`` names; raise ImproperlyConfigured for anything else."""
        number, _, descriptor = text.partition(":")
        try:
            self.number = int(number)
            self._socket = socket.socket(fileno=int(descriptor))
        except (OSError, ValueError) as error:
            raise ImproperlyConfigured("--child is for processes that --processes starts.") from error
        # A job that starts a process keeps the socket to itself.
        self._socket.set_inheritable(False)  # its only parameter

    def __call__(self, status: Status) -> None:
        line = json.dumps({**status.facts(), "was_ready": status.was_ready, "stopping": status.is_stopping}) + "\n"
        # A supervisor that does not read, or is gone, holds nobody up.
        with suppress(OSError):
            self._socket.send(line.encode(), socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Leave the socket open: orders come until the process ends, and its end tells the supervisor."""

    def orders(self) -> Iterator[bytes]:
        """Yield orders as they come; return when the supervisor is gone."""
        while True:
            try:
                order = self._socket.recv(1)
            except OSError:
                return
            if not order:
                return
            yield order


def run_supervised(driver: Driver, link: Link, run: Callable[[Driver], None]) -> None:
    """Run a driver until it ends by itself or is ordered to."""
    recruit = _Recruit(driver, link)
    with recruit.obeying():
        run(driver)
    if driver.is_cut_short:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + signal.SIGTERM)


class _Recruit:
    def __init__(self, driver: Driver, link: Link) -> None:
        self._driver = driver
        self._link = link
        self._first = threading.Lock()  # taken by whoever passes on the first order, a signal handler included

    @contextmanager
    def obeying(self) -> Iterator[None]:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                signal.signal(number, self._finish_by_signal)
            # The supervisor decides what a hang-up means.
            signal.signal(signal.SIGHUP, lambda *_: None)
        threading.Thread(target=self._obey, name="helisched-orders", daemon=True).start()
        yield

    def _obey(self) -> None:
        for order in self._link.orders():
            self._finish()
            if order == LEAVE:
                self._driver.stop()
        if self._finish():
            log_event(DriverEvent(what=What.DRIVER_NOTICE, text="The supervisor is gone: finishing what runs."))

    def _finish(self) -> bool:
        """Let the driver finish, once: a second word would make it leave at once."""
        is_first = self._first.acquire(blocking=False)
        if is_first:
            self._driver.stop()
        return is_first

    def _finish_by_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._finish()
