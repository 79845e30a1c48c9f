"""Ctrl-C and SIGTERM: once to finish, twice to end at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from django_helisched.driver.driver import Driver

START_ME_AGAIN = 75  # EX_TEMPFAIL of sysexits.h: not 0, so that a supervisor does start it again
STOPPING = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """The signals that came, and what they do to a driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._last = 0
        self._count = 0

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals inside the block; outside the main thread, which alone may, do nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = [(number, signal.signal(number, self.handle)) for number in STOPPING]
        try:
            yield
        finally:
            for number, handler in before:
                signal.signal(number, handler)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Stop the driver; the third signal does not even wait for a query that is under way."""
        del frame
        self._last = number
        self._count += 1
        self.driver.stop()
        if self._count > 2:
            os._exit(self.exit_code)

    @property
    def came(self) -> bool:
        """Tell whether a signal has come."""
        return self._count > 0

    @property
    def exit_code(self) -> int:
        """Return what a shell expects of a process that a signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self._last

    def leave_if_cut_short(self) -> None:
        """End the process where jobs were left running: their threads would keep it alive."""
        if self.driver.is_cut_short:
            _leave(self.exit_code)


def leave_if_worn_out(driver: Driver) -> None:
    """End the process of a driver that abandoned bodies have worn out: their threads would keep it alive."""
    if driver.is_worn_out and not driver.is_cut_short:
        _leave(START_ME_AGAIN)


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_signaled(driver: Driver, run: Callable[[Driver], None]) -> None:
    """Run a driver until it ends by itself or by a signal; after a second one the process is over."""
    signals = StopSignals(driver)
    with signals.handled():
        run(driver)
    signals.leave_if_cut_short()
