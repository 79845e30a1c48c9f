"""From what some work took to what it took it for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Probe:
    """What one statement there and back, and one commit, take on this database, in seconds."""

    round_trip: float
    commit: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What some jobs took: seconds by the clock and of this process's processor, statements, commits."""

    name: str
    jobs: int
    wall: float
    cpu: float
    statements: int
    commits: int

    @property
    def rate(self) -> float:
        """Return jobs a second."""
        return self.jobs / self.wall


def shares(cost: Cost, probe: Probe) -> dict[str, float]:
    """Return what the time went to, the largest share first; all of them are one together.

    Waiting is split by the probe's figures, as far as it goes: what is left is
    the database's own work. A probe that was slower than the work itself is cut down to it.
    """
    waited = max(0.0, cost.wall - cost.cpu)
    commits = min(waited, cost.commits * probe.commit)
    trips = min(waited - commits, cost.statements * probe.round_trip)
    seconds = {
        "the processor of this process": cost.wall - waited,
        "commits": commits,
        "round trips": trips,
        "the database's own work": waited - commits - trips,
    }
    ordered = sorted(seconds.items(), key=lambda part: -part[1])
    return {name: part / cost.wall for name, part in ordered}
