"""In which order a claim visits the queues, and how much it takes from each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.stores.base import TURNS_BY_AGE

if TYPE_CHECKING:
    from collections.abc import Iterable


def goes_by_age(turn: int) -> bool:
    """Tell whether this turn takes the oldest jobs of all, whatever their priority."""
    return turn % TURNS_BY_AGE == TURNS_BY_AGE - 1


def visit_order(queues: Iterable[str], limit: int, turn: int) -> list[tuple[str, int]]:
    """Return (queue, share) in the order of a visit: name order, begun at ``turn`` mod n.

    Every share is equal and at least 1, so with more queues than ``limit`` the
    later ones wait for a turn that begins with them. What the shares leave of
    ``limit`` is filled in the same order.
    """
    names = sorted(queues)
    if not names:
        return []
    first = turn % len(names)
    share = max(1, limit // len(names))
    return [(name, share) for name in names[first:] + names[:first]]
