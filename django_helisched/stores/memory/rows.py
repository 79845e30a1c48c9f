"""The tables as dictionaries of frozen records, and transactions over them."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from django_helisched.jobs.job import State
from django_helisched.jobs.progress import ProgressSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime
    from uuid import UUID

    from django_helisched.crons.cron import CronSnapshot, FireSnapshot
    from django_helisched.jobs.batch import BatchSnapshot
    from django_helisched.jobs.job import AttemptSnapshot, ClaimedJob, JobSnapshot
    from django_helisched.jobs.progress import ProgressReport
    from django_helisched.stores.base import QueuePause, WorkerReport

logger = logging.getLogger("django_helisched.stores")


@dataclass(slots=True, kw_only=True)
class Tables:
    """Every table. The records are frozen, so that a copy of the dictionaries is a copy of everything."""

    jobs: dict[UUID, JobSnapshot] = field(default_factory=dict)
    payloads: dict[UUID, str] = field(default_factory=dict)  # JSON text: what comes out is what was put in
    attempts: dict[UUID, tuple[AttemptSnapshot, ...]] = field(default_factory=dict)
    progress: dict[UUID, tuple[int, ProgressSnapshot]] = field(default_factory=dict)  # with the claim's fence
    paused: dict[str, QueuePause] = field(default_factory=dict)
    batches: dict[UUID, BatchSnapshot] = field(default_factory=dict)
    limits: dict[str, tuple[int, datetime]] = field(default_factory=dict)  # capacity, and who says so since when
    workers: dict[str, tuple[WorkerReport, datetime]] = field(default_factory=dict)
    crons: dict[UUID, CronSnapshot] = field(default_factory=dict)
    fires: dict[tuple[UUID, datetime], FireSnapshot] = field(default_factory=dict)

    def put(self, *jobs: JobSnapshot) -> None:
        """Write records of jobs over the ones before."""
        self.jobs.update({job.id: job for job in jobs})

    def all_jobs(self) -> list[JobSnapshot]:
        """Return every job, oldest id first."""
        return [job for _, job in sorted(self.jobs.items())]

    def held(self, claim: ClaimedJob) -> JobSnapshot | None:
        """Return the job if the claim still holds it: in progress, under the claim's fence."""
        job = self.jobs.get(claim.id)
        return job if job is not None and job.state == State.IN_PROGRESS and job.fence == claim.fence else None

    def report(self, claim: ClaimedJob, report: ProgressReport, now: datetime) -> None:
        """Write how far a claim's body has come over what was there."""
        newest = ProgressSnapshot(done=report.done, total=report.total, message=report.message, updated_at=now)
        self.progress[claim.id] = (claim.fence, newest)

    def holder_of(self, digest: str | None) -> JobSnapshot | None:
        """Return the job that has taken a key."""
        holders = (job for job in self.jobs.values() if digest is not None and job.key_digest == digest)
        return next(holders, None)

    def descendants_of(self, roots: Collection[UUID]) -> list[UUID]:
        """Return the children of these jobs, their children and so on, each once, oldest id first."""
        children: dict[UUID | None, list[UUID]] = {}
        for job in self.jobs.values():
            children.setdefault(job.parent_id, []).append(job.id)
        waiting = list(roots)
        found = set(waiting)
        while waiting:
            fresh = set(children.get(waiting.pop(), ())) - found
            found |= fresh
            waiting.extend(fresh)
        return sorted(found - set(roots))

    def copy(self) -> Tables:
        """Return tables that later writes to these do not change."""
        return replace(self, **{item.name: getattr(self, item.name).copy() for item in fields(self)})


class Rows:
    """The tables behind one lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.tables = Tables()
        self._callbacks: list[Callable[[], None]] | None = None  # of the open transaction

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        """Keep other threads out."""
        with self._lock:
            yield self.tables

    @contextmanager
    def transaction(self) -> Iterator[Tables]:
        """Keep other threads out, undo everything if an exception leaves, call back after the outermost end."""
        with self._lock:
            saved, outer = self.tables.copy(), self._callbacks
            callbacks = self._callbacks = []
            try:
                yield self.tables
            except BaseException:
                self.tables = saved
                raise
            finally:
                self._callbacks = outer
            if outer is not None:
                outer.extend(callbacks)
                return
        for callback in dict.fromkeys(callbacks):
            _call(callback)

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` after the outermost transaction of this thread, or now where none is open."""
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        _call(callback)


def _call(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:
        logger.exception("A callback after the commit raised; the commit stands.")
