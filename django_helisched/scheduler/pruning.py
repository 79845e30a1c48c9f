"""Delete what is old, a few rows at a time: whoever asks for a step decides when."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django_helisched import conf
from django_helisched.jobs.job import State
from django_helisched.jobs.retention import Cut, Keep, Retention, cut_of, earlier
from django_helisched.stores.base import PRUNE_LIMIT, Pruned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from django_helisched.stores.base import CronStore, JobStore

OUTCOMES = (State.SUCCESS, State.FAILED, State.CANCELED)
KINDS = (*(state.value for state in OUTCOMES), "batches", "fires", "workers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step did: ``kind`` is one of KINDS, ``share`` how far its walk has come, from 0 to 1."""

    kind: str
    pruned: Pruned
    share: float


def configured() -> Retention:
    """Return what the settings say is kept, and for how long; raise ImproperlyConfigured for a bad value."""
    settings = conf.get_settings()
    given = settings.retention
    keeps = {state.value: Keep(age=keep.age, count=keep.count) for state, keep in _keeps(given)}
    return Retention(**keeps, fires=given.fires, workers=given.workers, key_ttl=settings.key_ttl)


def _keeps(given: conf.Retention) -> list[tuple[State, conf.Keep]]:
    return [(State.SUCCESS, given.success), (State.FAILED, given.failed), (State.CANCELED, given.canceled)]


class Round:
    """One look at everything that may be old, outcome by outcome.

    With ``pretend`` it only counts. ``most`` bounds how many rows of each kind are
    looked at: a walk that ends there has a last step that does not say it is the end.
    """

    def __init__(
        self,
        jobs: JobStore,
        crons: CronStore,
        retention: Retention,
        *,
        pretend: bool = False,
        limit: int = PRUNE_LIMIT,
        most: int | None = None,
    ) -> None:
        self._jobs = jobs
        self._crons = crons
        self._retention = retention
        self._pretend = pretend
        self._limit = limit
        self._steps = None if most is None else most // limit

    def steps(self) -> Iterator[Step]:
        """Do one step for each value that is asked for."""
        for state in OUTCOMES:
            yield from self._prune_jobs(state)
        kept: dict[str, timedelta | None] = {
            "batches": self._retention.batches,
            "fires": self._retention.fires,
            "workers": self._retention.workers,
        }
        verbs: dict[str, Callable[..., Pruned]] = {
            "batches": self._jobs.prune_batches,
            "fires": self._crons.prune_fires,
            "workers": self._jobs.prune_workers,
        }
        for kind, age in kept.items():
            if age is not None:
                yield from self._prune_rows(kind, verbs[kind], age)

    def _prune_jobs(self, state: State) -> Iterator[Step]:
        keep = self._retention.of(state)
        surplus = None if keep.count is None else self._jobs.surplus(state.value, keep.count)
        cut = cut_of(state, keep, now=self._jobs.now(), key_ttl=self._retention.key_ttl, surplus=surplus)
        if cut is None:
            return
        told: set[UUID] = set()
        after, first = None, None
        for _ in self._numbers():
            pretended = told if self._pretend else None
            pruned = self._jobs.prune(cut, after=after, limit=self._limit, pretend=pretended)
            told |= pruned.ids if self._pretend else frozenset()
            after = pruned.after
            first = after if first is None else first
            yield Step(kind=state.value, pruned=pruned, share=1.0 if after is None else _share(first, after, cut))
            if after is None:
                return

    def _prune_rows(self, kind: str, prune: Callable[..., Pruned], age: timedelta) -> Iterator[Step]:
        before, after = earlier(self._jobs.now(), age), None
        for _ in self._numbers():
            pruned = prune(before, after=after, limit=self._limit, pretend=self._pretend)
            after = pruned.after
            yield Step(kind=kind, pruned=pruned, share=1.0 if after is None else 0.0)
            if after is None:
                return

    def _numbers(self) -> Iterator[int]:
        return count() if self._steps is None else iter(range(self._steps))


def _share(first: Any, reached: Any, cut: Cut) -> float:
    """Return how much of the time between the first job and the cut is walked: ids tell when jobs were made."""
    if not isinstance(first, UUID) or not isinstance(reached, UUID):
        return 0.0
    whole = cut.before.int - first.int
    return 0.0 if whole <= 0 else min(1.0, (reached.int - first.int) / whole)
