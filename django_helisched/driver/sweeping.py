"""Take back what dead workers held, and fail what nobody may start any more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django_helisched import functions, signals
from django_helisched.driver.heartbeat import REST
from django_helisched.driver.narration import swept
from django_helisched.jobs.leases import confirm_write, heartbeat_interval
from django_helisched.jobs.outcome import decide_loss
from django_helisched.stores.base import QueueFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from uuid import UUID

    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.events import Announcer
    from django_helisched.driver.watch import Watch
    from django_helisched.jobs.leases import Sighting
    from django_helisched.stores.base import JobStore, WorkerReport


class Sweeping:
    """Sweeps, and remembers what the last look saw."""

    def __init__(
        self,
        jobs: JobStore,
        config: DriverConfig,
        report: Callable[[], WorkerReport],
        announce: Announcer,
        rng: Callable[[], float],
        watch: Watch,
    ) -> None:
        self._jobs = jobs
        self._watch = watch
        self._config = config
        self._report = report
        self._announce = announce
        self._decide_loss = partial(decide_loss, max_losses=config.max_losses, rng=rng, backoff=config.backoff)
        self._seen: Mapping[UUID, Sighting] = {}
        self._swept_at: datetime | None = None
        self.next_at: datetime | None = None
        self.has_chores = True  # at the last look

    def is_due(self, now: datetime) -> bool:
        """Tell whether it is time for a sweep. A clock that was set back makes it time, too."""
        return self.next_at is None or now >= self.next_at or (self._swept_at is not None and now < self._swept_at)

    def sweep(self) -> int:
        """Do one sweep and return how many jobs it took back or ended.

        The worker's own row is written first, unless a heartbeat has just done so and nothing was seen
        lapsed: a database that takes that write would have taken the other worker's heartbeat.
        """
        now = self._jobs.now()
        # What was seen lapsed may be taken back only after a write since.
        if self._seen or not self._watch.wrote_within(REST * heartbeat_interval(self._config.lease), now):
            self._jobs.report_worker(self._report())
            now = self._jobs.now()
            self._watch.wrote(now)
        self.has_chores = self._jobs.has_chores()
        done = self._do_chores(now) if self.has_chores else 0
        if not self.has_chores:
            self._seen = {}
        self._schedule(self._jobs.now())
        return done

    def _do_chores(self, now: datetime) -> int:
        answer = self._jobs.sweep(
            confirm_write(self._seen), lease=self._watch.lease_to_judge_by(now), decide_loss=self._decide_loss
        )
        self._seen = answer.seen
        for job, outcome in answer.swept:
            self._announce(swept(job, outcome))
            self._announce.send(signals.job_settled, job_id=job.id, fn_path=job.fn_path, outcome=outcome)
        expired = self._jobs.expire(unknown_grace=self._config.unknown_grace)
        self._jobs.unhold_known(functions.known_paths())
        self._jobs.withdraw(self._is_served)
        return len(answer.swept) + expired

    def _is_served(self, queue: str) -> bool:
        """Tell whether any live worker claims from the queue; this one is among them."""
        if self._config.queues.admits(queue):
            return True
        live = self._jobs.live_workers(self._config.lease)
        return any(QueueFilter.of(worker.queues).admits(queue) for worker in live)

    def _schedule(self, now: datetime) -> None:
        """Sweep again after the usual time, or sooner for the second look at what was seen expired."""
        self._swept_at = now
        look_after = heartbeat_interval(self._config.lease)
        looks = [sighting.seen_at + look_after for sighting in self._seen.values()]
        # Never at once: a row that others hold locked stays unswept however often it is looked at.
        self.next_at = max(min([now + self._config.sweep, *looks]), now + self._config.poll_max)
