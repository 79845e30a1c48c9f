"""Jobs in memory: each verb of the contract, written as plainly as it can be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import TERMINAL, FailureReason, Hold, JobSnapshot, State
from django_helisched.jobs.keys import digest_of
from django_helisched.jobs.leases import Lapse, judge_lapses
from django_helisched.jobs.outcome import AttemptOutcome, Outcome, decide_expiry
from django_helisched.stores.base import (
    CLAIM_LIMIT,
    EVERY_QUEUE,
    NO_LIMITS,
    PRUNE_LIMIT,
    HeartbeatAnswer,
    JobStore,
    Pruned,
    QueuePause,
    SettleAnswer,
    SweepAnswer,
)
from django_helisched.stores.clock import cut
from django_helisched.stores.memory import pruning, transitions
from django_helisched.stores.memory.batches import counted, created
from django_helisched.stores.memory.limits import admit_limited, out_under, withdraw
from django_helisched.stores.memory.lives import CANCELED_UNRUN, Lives
from django_helisched.stores.memory.queues import chosen, due_at, front_of, is_over, pending
from django_helisched.stores.memory.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta
    from uuid import UUID

    from django_helisched.jobs.batch import BatchSnapshot, NewBatch
    from django_helisched.jobs.job import AttemptSnapshot, ClaimedJob, Enqueued, NewJob
    from django_helisched.jobs.leases import Sighting
    from django_helisched.jobs.progress import ProgressReport, ProgressSnapshot
    from django_helisched.jobs.retention import Cut
    from django_helisched.stores.base import DeclaredLimits, JobFilter, QueueFilter, Settlement, WorkerReport
    from django_helisched.stores.clock import Clock

CANCELED_BY_FORCE = Outcome(state=State.CANCELED, attempt=AttemptOutcome.CANCELED)


class MemoryJobStore(JobStore):
    """The jobs of one process, gone with it. Safe in threads."""

    def __init__(self, clock: Clock, new_id: Callable[[], UUID] = uuid7) -> None:
        self.rows = Rows()
        self._clock = clock
        self._lives = Lives(self.rows, clock.now, new_id)

    def now(self) -> datetime:
        return self._clock.now()

    def atomic(self) -> AbstractContextManager[Any]:
        return self.rows.transaction()

    def is_transient(self, error: BaseException) -> bool:
        return False

    def on_commit(self, callback: Callable[[], None]) -> None:
        self.rows.on_commit(callback)

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with self.atomic():
            return [self._lives.begin(job) for job in jobs]

    def admit(self, *, queues: QueueFilter = EVERY_QUEUE, limits: DeclaredLimits = NO_LIMITS) -> int:
        with self.rows.transaction() as tables:
            now = self.now()
            lines: dict[str, list[JobSnapshot]] = {}
            for job in tables.all_jobs():
                if job.hold == Hold.OVERLAP:
                    lines.setdefault(job.overlap_key, []).append(job)
            admitted = [transitions.waiting(job, now) for line in lines.values() for job in front_of(tables, line)]
            tables.put(*admitted)
            return sum(not job.hold for job in admitted) + admit_limited(tables, queues, limits, now)

    def withdraw(self, serves: Callable[[str], bool]) -> int:
        with self.rows.transaction() as tables:
            return withdraw(tables, serves, self.now())

    def create_batch(self, new: NewBatch) -> BatchSnapshot:
        with self.rows.transaction() as tables:
            return created(tables, new)

    def close_batch(self, batch_id: UUID) -> bool:
        with self.rows.transaction() as tables:
            batch = tables.batches.get(batch_id)
            if batch is None or batch.closed_at is not None:
                return False
            tables.batches[batch_id] = replace(batch, closed_at=self.now())
            self._lives.complete_batches(batch_id)
            return True

    def get_batch(self, batch_id: UUID) -> BatchSnapshot | None:
        with self.rows.reading() as tables:
            batch = tables.batches.get(batch_id)
            return None if batch is None else counted(tables, batch)

    def out_under(self, limit_key: str) -> int:
        with self.rows.reading() as tables:
            return out_under(tables, limit_key)

    def claim(
        self, *, worker_id: str, limit: int, lease: timedelta, queues: QueueFilter = EVERY_QUEUE, turn: int = 0
    ) -> list[ClaimedJob]:
        with self.rows.transaction() as tables:
            now = self.now()
            due = [job for job in pending(tables, queues, now) if _has_come(due_at(job, tables, now), now)]
            taken = chosen(due, limit=max(0, min(limit, CLAIM_LIMIT)), turn=turn)
            rows = [transitions.claimed(job, worker_id=worker_id, now=now, lease=lease) for job in taken]
            tables.put(*rows)
            return [transitions.claim_of(row, self._lives.payload_of(row.id)) for row in rows]

    def start(self, claim: ClaimedJob) -> bool:
        with self.rows.transaction() as tables:
            job = tables.held(claim)
            if job is not None:
                tables.put(replace(job, started_at=self.now()))
            return job is not None

    def heartbeat(self, claims: Sequence[ClaimedJob], *, lease: timedelta) -> HeartbeatAnswer:
        with self.rows.transaction() as tables:
            until = cut(self.now() + lease)
            held = [job for job in map(tables.held, claims) if job is not None]
            tables.put(*(replace(job, lease_expires_at=until) for job in held))
            return HeartbeatAnswer(
                lost=frozenset(claim.id for claim in claims) - {job.id for job in held},
                cancel_requested=frozenset(job.id for job in held if job.cancel_requested_at is not None),
            )

    def settle(self, settlements: Sequence[Settlement], *, is_last: bool = False) -> list[SettleAnswer]:
        del is_last  # the end of the block is as near
        with self.atomic():
            answers = [self._lives.settle(settlement) for settlement in settlements]
            done = [each for each, answer in zip(settlements, answers, strict=True) if answer is SettleAnswer.DONE]
            self._lives.cancel_below_canceled(each.claim.id for each in done)
            self._lives.complete_batches()
            return answers

    def progress(self, reports: Sequence[tuple[ClaimedJob, ProgressReport]]) -> list[bool]:
        with self.rows.transaction() as tables:
            holds = [tables.held(claim) is not None for claim, _ in reports]
            for (claim, report), held in zip(reports, holds, strict=True):
                if held:
                    tables.report(claim, report, self.now())
            return holds

    def progress_of(self, job_id: UUID) -> ProgressSnapshot | None:
        with self.rows.reading() as tables:
            job, found = tables.jobs.get(job_id), tables.progress.get(job_id)
            return found[1] if job is not None and found is not None and found[0] == job.fence else None

    def release(self, claims: Sequence[ClaimedJob]) -> int:
        with self.atomic():
            return len(self._released(claims))

    def hold_unknown(self, claims: Sequence[ClaimedJob]) -> int:
        with self.rows.transaction() as tables:
            now, given_back = self.now(), self._released(claims)
            unheld = [job for job in given_back if job.state == State.PENDING]
            tables.put(*(replace(job, hold=Hold.UNKNOWN_FUNCTION, held_at=now) for job in unheld))
            return len(given_back)

    def unhold_known(self, fn_paths: Collection[str]) -> int:
        with self.rows.transaction() as tables:
            held = [job for job in tables.all_jobs() if job.hold == Hold.UNKNOWN_FUNCTION]
            known = [job for job in held if job.state == State.PENDING and job.fn_path in fn_paths]
            tables.put(*(transitions.waiting(job, self.now()) for job in known))
            return len(known)

    def sweep(
        self, seen: Mapping[UUID, Sighting], *, lease: timedelta, decide_loss: Callable[[JobSnapshot], Outcome]
    ) -> SweepAnswer:
        with self.rows.transaction() as tables:
            now = self.now()
            lapses = [
                Lapse(job_id=job.id, fence=job.fence, lease_expires_at=job.lease_expires_at)
                for job in tables.all_jobs()
                if job.lease_expires_at is not None and job.lease_expires_at < now
            ]
            ripe, waiting = judge_lapses(lapses, seen, now=now, lease=lease)
            swept = [(job, decide_loss(job)) for job in (tables.jobs[lapse.job_id] for lapse in ripe)]
            for job, outcome in swept:
                self._lives.end(job, outcome)
            self._lives.cancel_below_canceled(job.id for job, _ in swept)
            self._lives.complete_batches()
            return SweepAnswer(swept=tuple(swept), seen=waiting)

    def expire(self, *, unknown_grace: timedelta, limit: int = 500) -> int:
        with self.rows.transaction() as tables:
            now, waits = self.now(), [job for job in tables.all_jobs() if job.state == State.PENDING]
            judged = [(job, decide_expiry(job, now=now, unknown_grace=unknown_grace)) for job in waits]
            over = [(job, outcome) for job, outcome in judged if outcome is not None]
            late = [each for each in over if each[1].failure_reason == FailureReason.EXPIRED]
            unknown = [each for each in over if each[1].failure_reason == FailureReason.UNKNOWN_FUNCTION]
            late.sort(key=lambda each: (each[0].expires_at, each[0].id))
            ended = [*late[:limit], *unknown[:limit]]
            for job, outcome in ended:
                self._lives.end(job, outcome)
            self._lives.complete_batches()
            return len(ended)

    def cancel(self, job_id: UUID, *, force: bool = False) -> bool:
        with self.rows.transaction() as tables:
            job = tables.jobs.get(job_id)
            if job is None or job.state in TERMINAL:
                return False
            if job.state == State.PENDING:
                self._lives.end(job, CANCELED_UNRUN)
            elif force:
                asked_at = job.cancel_requested_at or self.now()
                self._lives.end(replace(job, fence=job.fence + 1, cancel_requested_at=asked_at), CANCELED_BY_FORCE)
            else:
                self._lives.ask_to_cancel(job)
            self._lives.cancel_below([job_id])
            self._lives.complete_batches()
            return True

    def requeue(self, job_id: UUID) -> bool:
        with self.rows.transaction() as tables:
            job = tables.jobs.get(job_id)
            if job is None or job.state not in TERMINAL:
                return False
            digest = digest_of(job.space, job.idempotency_key) if job.idempotency_key else None
            holder = tables.holder_of(digest)
            if holder is not None and holder.id != job_id:
                return False
            tables.put(transitions.requeued(job, digest=digest, now=self.now()))
            return True

    def surplus(self, state: str, count: int) -> UUID | None:
        with self.rows.reading() as tables:
            newest_first = [job.id for job in reversed(tables.all_jobs()) if job.state == state]
            return newest_first[count] if count < len(newest_first) else None

    def prune(
        self, cut: Cut, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: Collection[UUID] | None = None
    ) -> Pruned:
        with self.rows.transaction() as tables:
            return pruning.prune_jobs(tables, cut, after=after, limit=limit, pretend=pretend)

    def prune_workers(
        self, seen_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        with self.rows.transaction() as tables:
            return pruning.prune_workers(tables, seen_before, after=after, limit=limit, pretend=pretend)

    def prune_batches(
        self, ended_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        with self.rows.transaction() as tables:
            return pruning.prune_batches(tables, ended_before, after=after, limit=limit, pretend=pretend)

    def next_due_at(self, queues: QueueFilter = EVERY_QUEUE, *, waiting: bool = False) -> datetime | None:
        with self.rows.reading() as tables:
            now = self.now()
            holds = (Hold.NONE, Hold.LATER, Hold.LIMIT) if waiting else (Hold.NONE, Hold.LATER)
            moments = [due_at(job, tables, now) for job in pending(tables, queues, now, holds)]
            return min((moment for moment in moments if moment is not None), default=None)

    def get(self, job_id: UUID) -> JobSnapshot | None:
        with self.rows.reading() as tables:
            return tables.jobs.get(job_id)

    def attempts_of(self, job_id: UUID) -> Sequence[AttemptSnapshot]:
        with self.rows.reading() as tables:
            return tables.attempts.get(job_id, ())

    def args_of(self, job_id: UUID) -> Mapping[str, Any]:
        with self.rows.reading():
            return self._lives.payload_of(job_id)

    def pause_queue(self, name: str, *, by: str = "", reason: str = "", until: datetime | None = None) -> None:
        with self.rows.transaction() as tables:
            paused_at = self.now()
            tables.paused[name] = QueuePause(queue=name, paused_at=paused_at, by=by, reason=reason, until=until)

    def resume_queue(self, name: str) -> bool:
        with self.rows.transaction() as tables:
            was_paused = name in tables.paused
            tables.paused.pop(name, None)
            return was_paused

    def pauses(self) -> Sequence[QueuePause]:
        with self.rows.reading() as tables:
            now = self.now()
            return [pause for _, pause in sorted(tables.paused.items()) if not is_over(pause, now)]

    def report_worker(self, report: WorkerReport) -> None:
        with self.rows.transaction() as tables:
            tables.workers[report.id] = (report, self.now())

    def live_workers(self, within: timedelta) -> Sequence[WorkerReport]:
        with self.rows.reading() as tables:
            since, workers = self.now() - within, sorted(tables.workers.items())
            return [report for _, (report, seen) in workers if seen >= since and report.state != "stopped"]

    def _released(self, claims: Sequence[ClaimedJob]) -> list[JobSnapshot]:
        tables = self.rows.tables
        held = [job for job in map(tables.held, claims) if job is not None]
        for job in held:
            if job.cancel_requested_at is None:
                tables.put(transitions.released(job, self.now()))
            else:
                self._lives.end(job, CANCELED_UNRUN)
        self._lives.cancel_below_canceled(job.id for job in held)
        self._lives.complete_batches()
        return [tables.jobs[job.id] for job in held]

    # Last, because below it the name of the built-in means this method.
    def list(self, which: JobFilter, *, limit: int = 100, before: UUID | None = None) -> list[JobSnapshot]:
        with self.rows.reading() as tables:
            newest_first = reversed(tables.all_jobs())
            found = [job for job in newest_first if which.admits(job) and (before is None or job.id < before)]
            return found[:limit]


def _has_come(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now
