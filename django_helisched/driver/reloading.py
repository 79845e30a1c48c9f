"""Start again when code changes, in development, without cutting a job in two."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from django.utils import autoreload

from django_helisched.driver.signals import STOPPING, StopSignals, leave_if_worn_out

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from django_helisched.driver.driver import Driver

PATIENCE = 10.0  # seconds a change of the code waits for running jobs; the leases of the rest lapse


def run_reloading(make: Callable[[], Driver], run: Callable[[Driver], None]) -> None:
    """Make and run a driver in Django's reloader, again after every change.

    A change, and a first signal, let running jobs finish.
    """
    child = _Child(make, run)
    # The parent only waits; the child, which has the jobs, answers Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Connected before the reloader starts: it sends its first signal while the driver is still being made.
    autoreload.autoreload_started.connect(child.listen)
    autoreload.file_changed.connect(child.finish)
    autoreload.run_with_reloader(child.serve)


class _Child:
    """The process that runs a driver in its second thread, while the first one watches files."""

    def __init__(self, make: Callable[[], Driver], run: Callable[[Driver], None]) -> None:
        self._make = make
        self._run = run
        self._signals: StopSignals | None = None
        self._ended = threading.Event()

    def listen(self, **_: Any) -> None:
        """Take the signals over, in the main thread."""
        for number in STOPPING:
            signal.signal(number, self._handle)

    def finish(self, **_: Any) -> None:
        """Let running jobs end before the process is replaced."""
        if self._signals is not None:
            self._signals.driver.stop()
            self._ended.wait(PATIENCE)

    def serve(self) -> None:
        """Run the driver; where a signal ended it, end the process, which would go on watching."""
        driver = self._make()
        self._signals = signals = StopSignals(driver)
        try:
            self._run(driver)
        finally:
            self._ended.set()
        if signals.came:
            sys.stdout.flush()
            os._exit(signals.exit_code if driver.is_cut_short else 0)
        leave_if_worn_out(driver)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._signals is None:
            os._exit(128 + number)
        self._signals.handle(number, frame)
