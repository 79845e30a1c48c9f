"""What a pass may leave out while jobs are many: all but the claim, for a moment."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

# Seconds between two looks at all there is. Whoever waits for a limit or another job, and a cron or timer that this
# process cannot know of, waits no longer for the jobs that are claimed meanwhile.
WHOLE_EVERY = 0.05


class Haste:
    """When the last whole look was, and what it knew to come."""

    def __init__(self) -> None:
        self._looked_at = -math.inf
        self._due: datetime | None = None

    def looked(self, due: Iterable[datetime | None]) -> None:
        """Note a whole look just now; ``due`` must not be missed."""
        self._looked_at = elapsed()
        self._due = min((moment for moment in due if moment is not None), default=None)

    def allows(self, now: datetime) -> bool:
        """Tell whether it is enough to claim."""
        return elapsed() - self._looked_at < WHOLE_EVERY and (self._due is None or now < self._due)
