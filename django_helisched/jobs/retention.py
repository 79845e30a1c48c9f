"""How long finished jobs are kept, and which of them may go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django_helisched.jobs.ids import first_id
from django_helisched.jobs.job import TERMINAL, State

if TYPE_CHECKING:
    from django_helisched.jobs.job import JobSnapshot

WEEK, MONTH = timedelta(days=7), timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How much of one outcome is kept: what ended within ``age``, and the newest ``count``. None: no bound."""

    age: timedelta | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long everything that is over is kept; None: for ever."""

    success: Keep = Keep(age=WEEK)
    failed: Keep = Keep(age=MONTH)
    canceled: Keep = Keep(age=WEEK)
    fires: timedelta | None = MONTH
    workers: timedelta | None = WEEK
    key_ttl: timedelta = WEEK

    def of(self, state: State) -> Keep:
        """Return what is kept of the jobs that ended so."""
        return {State.SUCCESS: self.success, State.FAILED: self.failed, State.CANCELED: self.canceled}[state]

    @property
    def batches(self) -> timedelta:
        """Return how long a batch is kept at least once it is complete; its jobs keep it longer."""
        ages = [keep.age for keep in (self.success, self.failed, self.canceled) if keep.age is not None]
        return min(ages, default=self.key_ttl)


DEFAULT_RETENTION = Retention()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Which finished jobs of one state may go, as of one instant.

    Jobs with an id below ``before`` are looked at, no others: ids grow with
    time, so that a walk ends where the young ones begin. ``surplus`` is the
    newest job that is one too many: it and all older ones may go whatever their
    age. A job that holds a key and ended at ``keys_since`` or later stays.
    """

    state: State
    before: UUID
    ended_before: datetime | None
    surplus: UUID | None
    keys_since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ties:
    """What keeps a finished job, whatever its age, because others need its row."""

    parent_is_there: bool = False
    has_live_child: bool = False
    batch_is_open: bool = False


def cut_of(state: State, keep: Keep, *, now: datetime, key_ttl: timedelta, surplus: UUID | None = None) -> Cut | None:
    """Return what may go of one state; None: nothing. ``surplus`` is the newest job beyond ``keep.count``."""
    ended_before = None if keep.age is None else earlier(now, keep.age)
    # Nobody can have ended before it was made.
    ends = [first_id(ended_before)] if ended_before is not None else []
    if surplus is not None:
        ends.append(UUID(int=surplus.int + 1))
    if not ends:
        return None
    return Cut(
        state=state, before=max(ends), ended_before=ended_before, surplus=surplus, keys_since=earlier(now, key_ttl)
    )


def is_spent(job: JobSnapshot, cut: Cut) -> bool:
    """Tell whether a job's own row says that it may go."""
    if job.state != cut.state or job.state not in TERMINAL or job.completed_at is None:
        return False
    if job.key_digest is not None and job.completed_at >= cut.keys_since:
        return False
    is_old = cut.ended_before is not None and job.completed_at < cut.ended_before
    return is_old or (cut.surplus is not None and job.id <= cut.surplus)


def is_free(ties: Ties) -> bool:
    """Tell whether nobody needs the row of a job that is spent.

    A cancel goes from a live job down to live ones, through finished ones. A
    family is therefore deleted from its oldest down, and no job above a live one.
    """
    return not (ties.parent_is_there or ties.has_live_child or ties.batch_is_open)


def earlier(now: datetime, age: timedelta) -> datetime:
    """Return the instant ``age`` ago, or the first that a datetime can be."""
    beginning = datetime.min.replace(tzinfo=now.tzinfo)
    return now - age if age < now - beginning else beginning
