"""What a simulation of crons found, to assert on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from django_helisched.crons.cron import CronSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFire:
    """One occurrence that became a job: when it was due, and when that happened."""

    name: str
    space: str
    due_at: datetime
    fired_at: datetime
    job_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedMiss:
    """Occurrences that became no job: ``count`` of them from ``due_at`` to ``last_due_at``, and why."""

    name: str
    space: str
    due_at: datetime
    last_due_at: datetime
    count: int
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJob:
    """One job: its occurrence, its run, and how it ended; pending or in progress where the time was over."""

    id: UUID
    name: str
    space: str
    fn_path: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    due_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    state: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened, in its order.

    ``crons`` are the rows at the end, ``notices`` what a scheduler would have told people.
    """

    fires: tuple[SimulatedFire, ...] = ()
    missed: tuple[SimulatedMiss, ...] = ()
    jobs: tuple[SimulatedJob, ...] = ()
    crons: tuple[CronSnapshot, ...] = ()
    notices: tuple[str, ...] = ()

    def of(self, name: str, *, space: str = "") -> Timeline:
        """Return what happened to one cron."""

        def own(each: Any) -> bool:
            return bool(each.name == name and each.space == space)

        return Timeline(
            tuple(filter(own, self.fires)),
            tuple(filter(own, self.missed)),
            tuple(filter(own, self.jobs)),
            tuple(filter(own, self.crons)),
            self.notices,
        )

    @property
    def due_times(self) -> list[datetime]:
        """Return the occurrences that became jobs."""
        return [fire.due_at for fire in self.fires]

    @property
    def missed_count(self) -> int:
        """Return how many occurrences became none."""
        return sum(miss.count for miss in self.missed)
