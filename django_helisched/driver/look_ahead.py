"""How many claims may wait for seats that are taken, so that no seat waits for a round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.stores.base import CLAIM_LIMIT
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from datetime import timedelta

MOST = 2 * CLAIM_LIMIT  # claims: while one statement fetches more, the seats have the others
WINDOW = 0.1  # seconds: what waits here should begin within that time, several round trips to a database
LONG = 0.2  # seconds of a job behind which nothing is to wait
LONGEST_WAIT = 0.5  # seconds after which a claim that has not begun is given back: others may have free seats

# A long job counts at once, short ones win back trust slowly: after some forty of them. Of short ones the mean counts:
# a disk that is slow now and then makes no job long.
_LONG, _SHORT = 0.3, 0.1


class LookAhead:
    """The look-ahead of so many seats of one kind, from how long the jobs of late have taken.

    Nothing is claimed ahead while jobs are long. Safe in threads: a measure lost to a race is no loss.
    """

    def __init__(self, seats: int, lease: timedelta) -> None:
        self._seats = seats
        self._longest_wait = min(LONGEST_WAIT, lease.total_seconds() / 4)
        self._typical = 1.0  # seconds; nothing is known yet
        self._last_begun = 0.0
        self._is_late = False

    def size(self) -> int:
        """Return how many claims may wait now."""
        if self._typical >= LONG:
            return 0
        return min(MOST, int(self._seats * WINDOW / self._typical))

    def began(self, claimed_at: float) -> float:
        """Note that a claim begins now, and return the instant."""
        now = self._last_begun = elapsed()
        if now - claimed_at > self._longest_wait:
            self._is_late = True
        return now

    def ended(self, began: float) -> None:
        """Note that what began then has freed its seat."""
        seconds = elapsed() - began
        self._typical += (seconds - self._typical) * (_LONG if seconds > max(self._typical, WINDOW) else _SHORT)
        self._typical = max(self._typical, 1e-6)

    def is_stuck(self, claimed_at: float) -> bool:
        """Tell whether claims wait for too long, the newest since ``claimed_at``: give them back."""
        since = max(claimed_at, self._last_begun)
        return self._is_late or elapsed() - since > self._longest_wait

    def give_up(self) -> None:
        """Claim nothing ahead until jobs are seen to be short again."""
        self._is_late = False
        self._typical = max(self._typical, self._longest_wait)
