"""Which kinds of seats the jobs of a queue need: a claim cannot ask for one kind only."""

from __future__ import annotations

from enum import StrEnum
from glob import escape
from typing import TYPE_CHECKING

from django_helisched.stores.base import QueueFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

REMEMBERED = 60.0  # seconds: a queue that had a job of some kind may have another one
ENOUGH = 128  # room of every kind with which one claim from all queues is as good as several
PROBE = 4  # jobs taken from a queue of which nothing is known, while one kind of seats is full


class SeatKind(StrEnum):
    """What a body needs: a thread, or the event loop."""

    THREAD = "thread"
    LOOP = "loop"


class Mix:
    """What this process has seen of the queues lately."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[SeatKind, float]] = {}

    def saw(self, queue: str, kind: SeatKind, now: float) -> None:
        """Note a job of a queue."""
        self._seen.setdefault(queue, {})[kind] = now

    def looks(
        self,
        served: QueueFilter,
        room: Mapping[SeatKind, int],
        now: float,
        *,
        probe: bool = True,
        few: bool = False,
        soon: frozenset[SeatKind] = frozenset(),
    ) -> list[tuple[QueueFilter, int]]:
        """Return from which queues to claim, and how many jobs at most, so that what comes finds room.

        A queue in which both kinds were seen waits for the fuller one: its jobs go in their order. Without
        ``probe`` queues of which nothing is known are left out, unless there is room for whatever they have. Where
        only ``few`` are expected one claim from all queues takes as many as find room whatever they are; so it does
        where no queue could be given much more. A kind that has much more room ``soon`` is no reason to look: queues of
        that kind alone wait for it, but no others, unless nothing but that kind was seen.
        """
        least, most = min(room.values()), max(room.values())
        if all(count <= 0 or kind in soon for kind, count in room.items()):
            return []
        if least >= ENOUGH or len(room) == 1 or (few and least > 0):
            return [(served, least)]
        groups = self._groups(room, now)
        asked = {kinds: min(room[kind] for kind in kinds) for kinds in groups if not kinds <= soon}
        if groups and not asked:
            # What is not known is asked for with the rest, and that is soon.
            return []
        if asked and least > 0 and 2 * max(asked.values()) <= 3 * least:
            return [(served, least)]
        looks = [
            (QueueFilter(include=tuple(escape(name) for name in groups[kinds])), limit)
            for kinds, limit in asked.items()
        ]
        if probe:
            known = tuple(escape(name) for name in self._seen)
            others = QueueFilter(include=served.include, exclude=(*served.exclude, *known))
            looks.append((others, least if least > 0 else min(most, PROBE)))
        return [(queues, limit) for queues, limit in looks if limit > 0]

    def _groups(self, room: Mapping[SeatKind, int], now: float) -> dict[frozenset[SeatKind], list[str]]:
        groups: dict[frozenset[SeatKind], list[str]] = {}
        for queue, kinds in list(self._seen.items()):
            fresh = frozenset(kind for kind, moment in kinds.items() if now - moment < REMEMBERED)
            if not fresh:
                del self._seen[queue]
            else:
                groups.setdefault(fresh, []).append(queue)
        return groups
