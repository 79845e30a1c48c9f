"""Marks for whom every listing of the heads takes long, so that they keep each answer for some claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.stores.base import EVERY_QUEUE
from django_helisched.stores.orm.marks import PATIENCE, SLOW, Marks
from django_helisched.testing.contract import START

if TYPE_CHECKING:
    from django_helisched.testing.clock import ManualClock


class SlowListings:
    """Elapsed time that goes on by each look at it, so that every listing is slow, and jumps with the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._looks = 0

    def __call__(self) -> float:
        self._looks += 1
        return 1e6 * (self._clock.now() - START).total_seconds() + 1.5 * SLOW * self._looks


def slow_marks(clock: ManualClock) -> Marks:
    marks = Marks(SlowListings(clock))
    for _ in range(PATIENCE):
        marks.listed(EVERY_QUEUE, list)
    marks.forget()
    return marks
