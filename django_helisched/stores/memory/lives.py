"""How a job begins and how it ends, with all that hangs on it: key, callback, descendants."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_helisched.exceptions import LeaseLost
from django_helisched.jobs import payload
from django_helisched.jobs.follow_up import follow_up_of, result_of
from django_helisched.jobs.job import TERMINAL, Enqueued, JobSnapshot, State
from django_helisched.jobs.keys import digest_of
from django_helisched.jobs.outcome import Outcome
from django_helisched.stores.base import SettleAnswer
from django_helisched.stores.memory import transitions
from django_helisched.stores.memory.batches import check_open, completed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from django_helisched.jobs.job import NewJob
    from django_helisched.stores.base import Settlement
    from django_helisched.stores.memory.rows import Rows, Tables

PAYLOAD = ("args", "kwargs", "context", "options", "meta")
CANCELED_UNRUN = Outcome(state=State.CANCELED, attempt=None)


class Lives:
    """Births and ends of jobs, inside a transaction that the caller has opened."""

    def __init__(self, rows: Rows, now: Callable[[], datetime], new_id: Callable[[], UUID]) -> None:
        self._rows = rows
        self._now = now
        self._new_id = new_id
        self._ended: set[UUID] = set()  # the batches of which the present verb has ended a job

    @property
    def _tables(self) -> Tables:
        return self._rows.tables

    def begin(self, new: NewJob) -> Enqueued:
        """Store one job, or find the older one that has its key."""
        canceled = self._is_born_canceled(new)
        check_open(self._tables, new)
        digest = None if new.idempotency_key is None else digest_of(new.space, new.idempotency_key)
        taken = self._tables.holder_of(digest)
        if taken is not None:
            return Enqueued(job=taken, created=False)
        job = transitions.born_canceled(new) if canceled else transitions.born(new, digest)
        self._tables.put(job)
        if new.has_args:
            self._tables.payloads[job.id] = payload.dumps({name: getattr(new, name) for name in PAYLOAD})
        return Enqueued(job=job, created=True)

    def payload_of(self, job_id: UUID) -> Mapping[str, Any]:
        """Return what was stored beside the job."""
        stored = self._tables.payloads.get(job_id)
        empty: dict[str, Any] = {"args": [], "kwargs": {}, "context": None, "options": {}, "meta": {}}
        return empty if stored is None else json.loads(stored)

    def settle(self, settlement: Settlement) -> SettleAnswer:
        """End an attempt for the worker that made it, with the callback that the worker brings."""
        outcome, job = settlement.outcome, self._tables.held(settlement.claim)
        if job is None:
            return SettleAnswer.LOST
        if job.cancel_requested_at is not None and outcome.state is not State.CANCELED:
            return SettleAnswer.CANCEL_REQUESTED
        self._write_end(job, outcome, started_at=settlement.started_at, log=settlement.log)
        if settlement.progress is not None:
            self._tables.report(settlement.claim, settlement.progress, self._now())
        if settlement.follow_up is not None and outcome.state in TERMINAL:
            self.begin(settlement.follow_up)
        return SettleAnswer.DONE

    def end(self, job: JobSnapshot, outcome: Outcome) -> None:
        """End what no worker settles, with its callback."""
        self._write_end(job, outcome, started_at=job.started_at)
        if outcome.state not in TERMINAL or not job.on_complete:
            return
        stored = self.payload_of(job.id)
        callback = follow_up_of(
            job,
            context=stored["context"],
            options=stored["options"],
            result=result_of(outcome),
            new_id=self._new_id(),
            now=self._now(),
        )
        if callback is not None:
            self.begin(callback)

    def complete_batches(self, *closed: UUID) -> None:
        """Complete the batches whose last job this verb has ended, and those that it has closed."""
        ended, self._ended = self._ended, set()
        for batch_id in sorted({*ended, *closed}):
            callback = completed(self._tables, batch_id, new_id=self._new_id, now=self._now())
            if callback is not None:
                self.begin(callback)

    def ask_to_cancel(self, job: JobSnapshot) -> None:
        """Request the cancel of a running job; the first request's instant stays."""
        if job.cancel_requested_at is None:
            self._tables.put(replace(job, cancel_requested_at=self._now()))

    def cancel_below(self, roots: Collection[UUID]) -> None:
        """Cancel what is pending below these jobs and ask what runs there to stop."""
        for job in [self._tables.jobs[descendant] for descendant in self._tables.descendants_of(roots)]:
            if job.state == State.PENDING:
                self.end(job, CANCELED_UNRUN)
            elif job.state == State.IN_PROGRESS:
                self.ask_to_cancel(job)

    def cancel_below_canceled(self, ended: Iterable[UUID]) -> None:
        """Take the descendants along of those among ``ended`` that are canceled now."""
        self.cancel_below([job_id for job_id in ended if self._tables.jobs[job_id].state == State.CANCELED])

    def _write_end(self, job: JobSnapshot, outcome: Outcome, *, started_at: datetime | None, log: str = "") -> None:
        now, history = self._now(), self._tables.attempts
        if outcome.attempt is not None:
            attempt = transitions.attempt_of(job, outcome, started_at=started_at, now=now, log=log)
            history[job.id] = (*history.get(job.id, ()), attempt)
        self._tables.put(transitions.ended(job, outcome, now))
        if job.batch_id is not None and outcome.state in TERMINAL:
            self._ended.add(job.batch_id)

    def _is_born_canceled(self, new: NewJob) -> bool:
        parent = None if new.parent_id is None else self._tables.jobs.get(new.parent_id)
        if new.parent_fence is not None:
            held = parent is not None and parent.state == State.IN_PROGRESS and parent.fence == new.parent_fence
            if not held:
                raise LeaseLost(
                    f"job {new.parent_id} is no longer this worker's, so it cannot enqueue {new.fn_path}. "
                    "Nothing was enqueued."
                )
        return parent is not None and (parent.state == State.CANCELED or parent.cancel_requested_at is not None)
