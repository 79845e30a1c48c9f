"""Notice a body that keeps the event loop from its other jobs."""

from __future__ import annotations

import sys
import sysconfig
from typing import TYPE_CHECKING

from django_helisched.driver.events import DriverEvent, What
from django_helisched.driver.narration import told
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from types import FrameType

    from django_helisched.driver.async_seats import AsyncSeats
    from django_helisched.driver.events import Announcer
    from django_helisched.driver.native import NativeExecutor

# Seconds without an answer. Far more than any step of a body may take, and less than a lease.
BLOCKED = 5.0

_LIBRARY = sysconfig.get_paths()["stdlib"]


class LoopWatch:
    """Asks the loop for an answer now and then, from a thread that goes on whatever the loop does."""

    def __init__(
        self, seats: AsyncSeats, executor: NativeExecutor, announce: Announcer, blocked_after: float = BLOCKED
    ) -> None:
        self._seats = seats
        self._executor = executor
        self._announce = announce
        self._blocked_after = blocked_after
        self._asked_at: float | None = None
        self._has_told = False

    @property
    def blocked_for(self) -> float:
        """Return for how many seconds the loop has not answered; 0 where it did, or was not asked."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else elapsed() - asked_at

    def look(self) -> None:
        """Ask the loop, or tell who keeps it from answering."""
        if self._asked_at is None:
            if self._seats.is_running:
                self._asked_at = elapsed()
                self._seats.answer(self._answered)
        elif not self._has_told and self.blocked_for >= self._blocked_after:
            self._has_told = True
            self._tell()

    def _answered(self) -> None:
        if self._has_told:
            text = f"The event loop goes on after {self.blocked_for:.1f} s."
            self._announce(DriverEvent(what=What.LOOP_BACK, text=text))
        self._asked_at, self._has_told = None, False

    def _tell(self) -> None:
        task, thread_id = self._seats.at_work()
        held = None if task is None else self._executor.held_by(task)
        frame = sys._current_frames().get(thread_id or 0)  # noqa: SLF001  # documented, for debugging such as this
        text = (
            f"it has kept the event loop for {self.blocked_for:.1f} s{_where(frame)}, and every other async job waits; "
            "await what takes long, or make it a plain function"
        )
        if held is None:
            self._announce(DriverEvent(what=What.LOOP_BLOCKED, text=f"Something blocks the event loop: {text}."))
        else:
            self._announce(told(held.claim, What.LOOP_BLOCKED, text=text))


def _where(frame: FrameType | None) -> str:
    """Return the innermost place that is not Python's own library."""
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        if "site-packages" in frame.f_code.co_filename:
            break
        frame = frame.f_back
    return "" if frame is None else f" at {frame.f_code.co_filename}:{frame.f_lineno}"
