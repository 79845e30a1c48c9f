"""How long a driver waits between two looks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

LINGER = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one pass found: ``at`` its instant, and what it knows to come.

    ``again``: there was more than the pass took. ``busy``: it found something to
    do. ``news``: something that it could not know of.
    """

    at: datetime
    again: bool = False
    busy: bool = False
    news: bool = False
    due: tuple[datetime | None, ...] = ()


class Pace:
    """How long to wait between two looks: until what is known to come, and no longer than news may go unseen.

    Where others tell of what they store (``is_told``), that is ``net``, once nothing is left to do. Else it
    is the shortest wait for LINGER after the last news, since more may follow,
    and then grows to the longest while nothing happens.
    """

    def __init__(self, shortest: timedelta, longest: timedelta, net: timedelta) -> None:
        self._shortest = shortest
        self._longest = longest
        self._net = max(longest, net)
        self._idle = shortest
        self._news_at: datetime | None = None
        self.is_told = False

    def seconds_after(self, look: Look, now: datetime) -> float:
        """Return how long to wait after ``look`` unless somebody rings.

        What was due at the look already and yet not taken is held by others:
        it sets no date, or the loop would spin on it.
        """
        if look.again:
            return 0.0
        known = [moment for moment in look.due if moment is not None]
        coming = [moment for moment in known if moment > look.at]
        # Nobody tells when a lock is let go.
        is_calm = not look.busy and len(coming) == len(known)
        unseen = self._net if self.is_told and is_calm else self._poll(look)
        return max(0.0, min([unseen, *(moment - now for moment in coming)]).total_seconds())

    def _poll(self, look: Look) -> timedelta:
        if look.news:
            self._news_at = look.at
        lingers = self._news_at is not None and look.at - self._news_at < LINGER
        self._idle = self._shortest if look.busy or lingers else min(self._longest, 2 * self._idle)
        return self._idle
