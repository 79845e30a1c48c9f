"""Whether a driver is alive and takes jobs, from what its two loops leave behind."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.outage import Outage

STARTING = "starting"
_LEAST = 5.0  # seconds: a busy machine pauses any process for a moment
_TIMES = 3  # of the longest time that a loop may well take


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What a probe is told.

    ``is_live``: the loops move; where they do not, only a new process helps.
    ``is_ready``: it takes jobs. ``was_ready``: it did so once.
    """

    is_live: bool = True
    is_ready: bool = False
    was_ready: bool = False
    is_stopping: bool = False
    text: str = ""
    in_flight: int = 0
    seats: int = 0

    def facts(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "live": self.is_live,
            "ready": self.is_ready,
            "status": self.text,
            "in_flight": self.in_flight,
            "seats": self.seats,
        }


def longest_silence(config: DriverConfig) -> float:
    """Return after how many seconds without a move a loop is wedged: by then its leases have lapsed."""
    longest_wait = max(config.poll_max, min(config.poll_net, config.sweep))  # a sweep ends every wait
    return max(_LEAST, _TIMES * config.lease.total_seconds(), _TIMES * longest_wait.total_seconds())


class Vitals:
    """The signs of life of one driver.

    Its loops tell an Outage of every try, one that failed, too: an outage of the
    database is waited out, and no reason to end a process. A job that takes long
    keeps neither loop from moving.
    """

    def __init__(
        self, loops: Mapping[str, Outage], longest: float, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._loops = loops
        self._longest = longest
        self._now = now
        self.is_booted = False

    def moved(self, loop: str) -> None:
        """Note that a loop goes on, where it tries nothing for a while."""
        self._loops[loop].moved()

    def status(self, *, is_stopping: bool, in_flight: int, seats: int) -> Status:
        """Return the status now."""
        wedged = self._wedged()
        lost = any(outage.is_on for outage in self._loops.values())
        return Status(
            is_live=not wedged,
            is_ready=self.is_booted and not (wedged or lost or is_stopping),
            was_ready=self.is_booted,
            is_stopping=is_stopping,
            text=wedged or self._words(lost=lost, is_stopping=is_stopping),
            in_flight=in_flight,
            seats=seats,
        )

    def _wedged(self) -> str:
        for name, outage in self._loops.items():
            silence = self._now() - outage.moved_at
            if silence > self._longest:
                return f"the {name} has not moved for {silence:.0f} s"
        return ""

    def _words(self, *, lost: bool, is_stopping: bool) -> str:
        if is_stopping:
            return "finishing what runs"
        if lost:
            return "the database does not answer"
        return "ready" if self.is_booted else STARTING
