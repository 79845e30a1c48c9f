"""A time without the database: said once, waited out with growing delays."""

from __future__ import annotations

import logging
import re
from time import monotonic
from typing import TYPE_CHECKING

from django.db import Error

from django_helisched.driver import connections
from django_helisched.driver.events import DriverEvent, What
from django_helisched.driver.patience import is_outage
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.driver.events import Announcer
    from django_helisched.driver.wake import Wakeup

logger = logging.getLogger("django_helisched.driver")

FIRST_DELAY, LONGEST_DELAY = 0.5, 5.0  # seconds between tries: nobody waits long once the database is back

# A server that closes idle connections does so after minutes, rarely after seconds.
TRUSTED_FOR = 10.0

# PostgreSQL, MySQL, MariaDB and SQLite say it in their own words, and with four different codes.
_READ_ONLY = re.compile(r"read[- ]?only", re.IGNORECASE)


class Outage:
    """Whether the database answers, as seen by one loop."""

    def __init__(self, announce: Announcer, lost: What, back: What, *, longest: float = LONGEST_DELAY) -> None:
        self._announce = announce
        self._lost = lost
        self._back = back
        self._longest = longest
        self._delay = 0.0
        self.moved_at = monotonic()  # when the loop last said how a try went

    @property
    def is_on(self) -> bool:
        """Tell whether the last try failed."""
        return self._delay > 0

    def moved(self) -> None:
        """Note that the loop goes on."""
        self.moved_at = monotonic()

    def failed(self, error: BaseException) -> float:
        """Note a failure, announce the first of a row, and return the seconds to wait before the next try."""
        self.moved()
        if not self.is_on:
            self._announce(DriverEvent(what=self._lost, text=_sentence(error)))
            if not isinstance(error, Error):
                # Not the database's doing: whoever mends it needs to know where.
                logger.error("A pass failed.", exc_info=error)
        self._delay = min(self._longest, 2 * self._delay or FIRST_DELAY)
        return self._delay

    def passed(self) -> None:
        """Note a success, and announce it after failures."""
        self.moved()
        if self.is_on:
            self._delay = 0.0
            self._announce(DriverEvent(what=self._back, text="The database answers again."))


class Endurance:
    """Keeps a loop going through outages."""

    def __init__(self, outage: Outage, database: str, wakeup: Wakeup, is_stopping: Callable[[], bool]) -> None:
        self._outage = outage
        self._database = database
        self._wakeup = wakeup
        self._is_stopping = is_stopping

    def persist(self, step: Callable[[], object], fatal: tuple[type[Exception], ...] = ()) -> None:
        """Do ``step`` until it succeeds or the loop stops, resting after each failure; ``fatal`` errors pass."""
        while True:
            try:
                connections.freshen(self._database, trusted_for=TRUSTED_FOR)
                step()
                connections.used()
            except fatal:
                raise
            except Exception as error:
                delay = self._outage.failed(error)
                connections.drop(self._database, was_lost=is_outage(error))
                self._rest(delay)
            else:
                self._outage.passed()
                return
            if self._is_stopping():
                return

    def _rest(self, seconds: float) -> None:
        """Wait, whoever rings: seats that end and commits elsewhere are no reason to try sooner."""
        until = elapsed() + seconds
        while not self._is_stopping() and (left := until - elapsed()) > 0:
            self._wakeup.clear()
            self._wakeup.wait(left)


def _sentence(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    told = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    if isinstance(error, Error) and "is locked" in told:
        return (
            f"The SQLite file is locked ({told}). Trying again; if it lasts, keep transactions short "
            "(work that waits is for actions), or use a server database."
        )
    if isinstance(error, Error) and _READ_ONLY.search(told):
        return (
            f"The database takes no writes ({told}): a standby, or a primary that is being replaced. "
            "Connecting anew until one takes them."
        )
    if isinstance(error, Error):
        return f"The database does not answer ({told}). Trying again until it does."
    return f"A pass failed ({told}). Trying again."
