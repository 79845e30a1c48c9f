"""Do again what the database refused for the moment."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from django.db import DatabaseError, DataError, Error, IntegrityError, NotSupportedError, ProgrammingError

from django_helisched.driver import connections
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from django_helisched.driver.held import Held

R = TypeVar("R")

FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds between tries

# A lapsed lease that nobody swept can still be settled, and while the database is away nobody
# sweeps. Ten leases outlast a restart or a failover; after that a restart of ours is the likelier mend.
LEASES = 10

_REFUSALS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


def is_outage(error: BaseException) -> bool:
    """Tell whether the database could not answer, as opposed to refusing what it was asked."""
    return isinstance(error, Error) and not isinstance(error, _REFUSALS) and not _is_bare(error)


def _is_bare(error: BaseException) -> bool:
    # DatabaseError itself is raised by Django for its own reasons, never for a lost connection.
    return type(error) is DatabaseError


class Patience:
    """Tries again with growing delays for as long as a claim may still be ours."""

    def __init__(self, database: str, lease: timedelta, hurry: threading.Event) -> None:
        self.database = database
        self.hurry = hurry
        self._longest = LEASES * lease.total_seconds()

    def is_over(self, held: Held, since: float) -> bool:
        """Tell whether there is no use any more in what was first tried at ``since``, on the clock of elapsed()."""
        return held.control.lease_lost or self.hurry.is_set() or elapsed() - since > self._longest

    def attempt(self, held: Held, work: Callable[[], R]) -> R:
        """Return ``work()``; raise its error once it refuses, the claim is lost, or the time is over."""
        began, delay = elapsed(), FIRST_DELAY
        while True:
            try:
                return work()
            except Exception as error:
                connections.drop(self.database, was_lost=is_outage(error))
                if self.is_over(held, began) or not is_outage(error) or self.hurry.wait(delay):
                    raise
            delay = min(LONGEST_DELAY, 2 * delay)
