"""Where claims begin while listing the heads takes long.

A claim reads past the rows that earlier ones have left behind in the index. While somebody
holds an old transaction open nobody can clear them away, and after some 100,000 jobs that
costs more than all the rest. So the due heads that a listing found, and how far it had to read
for each, serve the next claims too, for a few times as long as it took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.stores.base import QueueFilter
    from django_helisched.stores.orm.heads import Head

T = TypeVar("T")

SLOW = 0.01  # seconds that a listing takes at least for its answer to be kept
TAKING = 0.00005  # seconds that a job takes, and its arguments, where both are done by one statement
PATIENCE = 3  # listings in a row that were slow: one may have waited for anything
WORTH = 4  # times as long as it took an answer is kept: listing takes a fifth of the time then
LONGEST = 1.0  # seconds


class Marks:
    """What the last listing of the due heads has found, while it may serve. Safe in threads."""

    def __init__(self, elapsed: Callable[[], float] = elapsed) -> None:
        self._elapsed = elapsed
        self._slow = 0
        self._changes = 0
        self._kept: dict[QueueFilter, tuple[list[Head], float]] = {}

    def kept(self, queues: QueueFilter) -> list[Head]:
        """Return the heads that a claim may begin with, without a look at what else there is."""
        heads, until = self._kept.get(queues, ([], 0.0))
        return heads if self._elapsed() < until else []

    @property
    def are_needless(self) -> bool:
        """Tell whether listing was quick of late, so that it need not be done by a statement of its own."""
        return not self._slow

    def timed(self, ask: Callable[[], T], taken: Callable[[T], int]) -> T:
        """Return what ``ask`` gives, which lists the heads and takes jobs; after a slow one the next claim only lists.

        It may have waited for the disk. Only a listing by itself tells how long listing takes.
        """
        begun = self._elapsed()
        answer = ask()
        self._slow = int(self._elapsed() - begun >= SLOW + taken(answer) * TAKING)
        return answer

    def listed(self, queues: QueueFilter, ask: Callable[[], list[Head]]) -> list[Head]:
        """Return the due heads that ``ask`` lists, and keep them where that took long."""
        changes, begun = self._changes, self._elapsed()
        heads = ask()
        now = self._elapsed()
        self._slow = self._slow + 1 if now - begun >= SLOW else 0
        self._kept.pop(queues, None)
        # What somebody changed meanwhile may not be in the answer.
        if self._slow >= PATIENCE and changes == self._changes:
            self._kept[queues] = heads, now + min(LONGEST, WORTH * (now - begun))
        return heads

    def forget(self) -> None:
        """Keep nothing: there may be jobs that no listing has seen."""
        self._changes += 1
        self._kept = {}
