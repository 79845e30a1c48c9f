"""What one tick did, as a value that a test compares."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick did: jobs made by crons, jobs taken back or ended by a sweep, jobs started, old rows deleted."""

    fired: int = 0
    swept: int = 0
    claimed: int = 0
    pruned: int = 0

    def __add__(self, other: Tick) -> Tick:
        return Tick(
            self.fired + other.fired,
            self.swept + other.swept,
            self.claimed + other.claimed,
            self.pruned + other.pruned,
        )
