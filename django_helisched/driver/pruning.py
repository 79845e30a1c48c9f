"""When a driver deletes old rows: in idle time, a few at a time."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from django_helisched.driver.events import DriverEvent, What
from django_helisched.driver.patience import is_outage
from django_helisched.scheduler.pruning import KINDS, Round, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from django_helisched.driver.events import Announcer
    from django_helisched.jobs.retention import Retention
    from django_helisched.stores.base import CronStore, JobStore

# Between two rounds: soon after one that found something, since more grows old; otherwise it can wait.
SOON, EVERY = timedelta(minutes=1), timedelta(minutes=10)

# The steps of one call from outside the loop, so that an external cron's process comes to its end.
STEPS = 100

# What is due so soon would have to wait for a step.
MARGIN = timedelta(milliseconds=100)


class Pruning:
    """Goes on with a round of pruning where there is nothing better to do. Any number of drivers may."""

    def __init__(
        self,
        jobs: JobStore,
        crons: CronStore,
        retention: Retention | None,
        announce: Announcer,
        rng: Callable[[], float],
    ) -> None:
        self._jobs = jobs
        self._crons = crons
        self._retention = retention
        self._announce = announce
        self._rng = rng
        self._round: Iterator[Step] | None = None
        self._counts: Counter[str] = Counter()
        self._refused = 0
        self._next_at: datetime | None = None

    def prune_if_due(self, now: datetime, next_due_at: datetime | None) -> int:
        """Do one step where it is time for it, and return how many rows it deleted.

        The first round begins some time after the start, and drivers that started together drift apart.
        """
        if self._retention is None or (next_due_at is not None and next_due_at - now < MARGIN):
            return 0
        if self._next_at is None:
            self._put_off(now, SOON)
        return self._step() or 0 if self._is_due(now) else 0

    def prune(self) -> int:
        """Do a round, or as much of it as STEPS steps do, and return how many rows it deleted."""
        deleted = 0
        for _ in range(STEPS):
            done = self._step()
            if done is None:
                break
            deleted += done
        return deleted

    def _is_due(self, now: datetime) -> bool:
        if self._round is not None or self._next_at is None:
            return True
        # A clock that was set back does not put it off.
        return now >= self._next_at or self._next_at - now > 2 * EVERY

    def _step(self) -> int | None:
        """Do one step and return how many rows it deleted; None: the round is over."""
        if self._retention is None:
            return None
        if self._round is None:
            self._round = Round(self._jobs, self._crons, self._retention).steps()
        try:
            step = next(self._round, None)
        except Exception as error:
            self._fail(error)
            return None
        if step is None:
            self._end(SOON if self._counts.total() else EVERY)
            return None
        self._counts[step.kind] += step.pruned.count
        self._refused += step.pruned.refused
        return step.pruned.count

    def _fail(self, error: Exception) -> None:
        """Leave the rest for later; without the database, let the loop wait for it as it always does."""
        self._end(SOON if self._jobs.is_transient(error) else EVERY)
        if self._jobs.is_transient(error):
            return
        if is_outage(error):
            raise error
        text = f"Old rows could not be deleted ({type(error).__name__}: {error}). Everything else goes on."
        self._announce(DriverEvent(what=What.DRIVER_NOTICE, text=text))

    def _end(self, wait: timedelta) -> None:
        deleted, refused = +self._counts, self._refused
        self._round, self._counts, self._refused = None, Counter(), 0
        self._put_off(self._jobs.now(), wait)
        if deleted or refused:
            parts = [f"{deleted[kind]} {kind}" for kind in KINDS if deleted[kind]]
            kept = f"{refused} kept, since rows of this project point at them" if refused else ""
            text = f"Deleted old rows: {', '.join(parts) or 'none'}. {kept}".strip()
            self._announce(DriverEvent(what=What.DRIVER_PRUNED, text=text))

    def _put_off(self, now: datetime, wait: timedelta) -> None:
        self._next_at = now + wait * (0.5 + self._rng())
