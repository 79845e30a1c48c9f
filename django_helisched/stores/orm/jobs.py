"""OrmJobStore: the job contract on the project's database."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import AttemptSnapshot, Hold, State
from django_helisched.models import Attempt, Job, JobArgs, Queue
from django_helisched.stores.base import (
    EVERY_QUEUE,
    NO_LIMITS,
    PRUNE_LIMIT,
    JobStore,
    QueuePause,
    SettleAnswer,
)
from django_helisched.stores.clock import later
from django_helisched.stores.orm import (
    admitting,
    batching,
    chores,
    claiming,
    holding,
    inserting,
    limit_lines,
    limiting,
    operating,
    progress,
    pruning,
    settling,
    sweeping,
    workers,
)
from django_helisched.stores.orm.claim_statement import Take
from django_helisched.stores.orm.connection import WholeTransaction, is_transient, once_more
from django_helisched.stores.orm.heads import heads
from django_helisched.stores.orm.marks import Marks
from django_helisched.stores.orm.rows import PAYLOAD, job_snapshot
from django_helisched.stores.orm.telling import Telling, after_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta
    from uuid import UUID

    from django_helisched.jobs.batch import BatchSnapshot, NewBatch
    from django_helisched.jobs.job import ClaimedJob, Enqueued, JobSnapshot, NewJob, Particulars
    from django_helisched.jobs.leases import Sighting
    from django_helisched.jobs.outcome import Outcome
    from django_helisched.jobs.progress import ProgressReport, ProgressSnapshot
    from django_helisched.jobs.retention import Cut
    from django_helisched.stores.base import (
        DeclaredLimits,
        HeartbeatAnswer,
        JobFilter,
        Pruned,
        QueueFilter,
        Settlement,
        SweepAnswer,
        Teller,
        WorkerReport,
    )
    from django_helisched.stores.clock import Clock


class OrmJobStore(JobStore):
    """Jobs in the database ``alias``. Every verb keeps the contract of ``JobStore``."""

    def __init__(
        self,
        alias: str,
        clock: Clock,
        new_id: Callable[[], UUID] = uuid7,
        *,
        teller: Teller | None = None,
        marks: Marks | None = None,
    ) -> None:
        self._alias = alias
        self._clock = clock
        self._new_id = new_id
        self._marks = Marks() if marks is None else marks
        self._tell = Telling(alias, teller, self._marks.forget)
        self._walk = limit_lines.Walk()

    def now(self) -> datetime:
        return self._clock.now()

    def atomic(self) -> AbstractContextManager[None]:
        return WholeTransaction(self._alias)

    def is_transient(self, error: BaseException) -> bool:
        return is_transient(error)

    def on_commit(self, callback: Callable[[], None]) -> None:
        after_commit(self._alias, callback)

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        stored = once_more(self._alias, lambda: inserting.enqueue(self._alias, jobs))
        self._tell.due(any(one.created for one in stored))
        return stored

    def enqueue_alike(self, pattern: NewJob, each: Sequence[Particulars]) -> JobSnapshot:
        stored = once_more(self._alias, lambda: inserting.enqueue_alike(self._alias, pattern, each))
        self._tell.due(each)
        return stored

    def admit(self, *, queues: QueueFilter = EVERY_QUEUE, limits: DeclaredLimits = NO_LIMITS) -> int:
        now = self.now()
        admitted = once_more(self._alias, lambda: admitting.admit(self._alias, self._walk, queues, limits, now))
        self._tell.due(admitted)
        return admitted

    def withdraw(self, serves: Callable[[str], bool]) -> int:
        limiting.forget(self._alias, self._walk)
        return limiting.withdraw(self._alias, serves, self.now())

    def create_batch(self, new: NewBatch) -> BatchSnapshot:
        return batching.create(self._alias, new)

    def close_batch(self, batch_id: UUID) -> bool:
        now = self.now()
        closed = once_more(self._alias, lambda: batching.close(self._alias, batch_id, new_id=self._new_id, now=now))
        self._tell.due(closed)
        return closed

    def get_batch(self, batch_id: UUID) -> BatchSnapshot | None:
        return batching.get(self._alias, batch_id)

    def out_under(self, limit_key: str) -> int:
        return limit_lines.out_under(self._alias, [limit_key]).get(limit_key, 0)

    def claim(
        self,
        *,
        worker_id: str,
        limit: int,
        lease: timedelta,
        queues: QueueFilter = EVERY_QUEUE,
        turn: int = 0,
    ) -> list[ClaimedJob]:
        now = self.now()
        take = Take(worker_id=worker_id, now=now, lease_expires_at=later(now, lease))
        return claiming.claim(self._alias, take, self._marks, limit=limit, queues=queues, turn=turn)

    def start(self, claim: ClaimedJob) -> bool:
        return holding.start(self._alias, claim, self.now())

    def heartbeat(self, claims: Sequence[ClaimedJob], *, lease: timedelta) -> HeartbeatAnswer:
        until = later(self.now(), lease)
        return once_more(self._alias, lambda: holding.heartbeat(self._alias, claims, lease_expires_at=until))

    def settle(self, settlements: Sequence[Settlement], *, is_last: bool = False) -> list[SettleAnswer]:
        now = self.now()
        if is_last and len(settlements) == 1:
            connection = connections[self._alias]
            if settling.is_whole_end(connection, settlements[0]):
                # What nearly every mutation does: nothing of it could be done again alone, and nobody is to be told.
                return [settling.settle_last(connection, settlements[0], now)]
        settle = partial(settling.settle, self._alias, settlements, new_id=self._new_id, now=now)
        answers = once_more(self._alias, settle)
        done = [one for one, answer in zip(settlements, answers, strict=True) if answer is SettleAnswer.DONE]
        self._tell.due(
            any(
                one.follow_up is not None or one.claim.batch_id is not None or one.outcome.state is State.PENDING
                for one in done
            )
        )
        self._tell.canceled(any(one.outcome.state is State.CANCELED for one in done))
        return answers

    def progress(self, reports: Sequence[tuple[ClaimedJob, ProgressReport]]) -> list[bool]:
        return progress.report(self._alias, reports, self.now())

    def progress_of(self, job_id: UUID) -> ProgressSnapshot | None:
        return progress.read(self._alias, job_id)

    def release(self, claims: Sequence[ClaimedJob]) -> int:
        return self._release(claims, Hold.NONE)

    def hold_unknown(self, claims: Sequence[ClaimedJob]) -> int:
        return self._release(claims, Hold.UNKNOWN_FUNCTION)

    def _release(self, claims: Sequence[ClaimedJob], hold: Hold) -> int:
        given_back = partial(holding.release, self._alias, claims, new_id=self._new_id, now=self.now(), hold=hold)
        count = once_more(self._alias, given_back)
        self._tell.due(count and hold is Hold.NONE)
        return count

    def unhold_known(self, fn_paths: Collection[str]) -> int:
        lifted = once_more(self._alias, lambda: holding.unhold_known(self._alias, sorted(fn_paths), self.now()))
        self._tell.due(lifted)
        return lifted

    def has_chores(self) -> bool:
        return chores.any_left(connections[self._alias], self.now())

    def sweep(
        self,
        seen: Mapping[UUID, Sighting],
        *,
        lease: timedelta,
        decide_loss: Callable[[JobSnapshot], Outcome],
    ) -> SweepAnswer:
        answer = sweeping.sweep(
            self._alias, seen, lease=lease, decide_loss=decide_loss, new_id=self._new_id, now=self.now()
        )
        self._tell.due(answer.swept)
        self._tell.canceled(any(outcome.state is State.CANCELED for _, outcome in answer.swept))
        return answer

    def expire(self, *, unknown_grace: timedelta, limit: int = 500) -> int:
        expired = sweeping.expire(
            self._alias, unknown_grace=unknown_grace, limit=limit, new_id=self._new_id, now=self.now()
        )
        self._tell.due(expired)
        return expired

    def cancel(self, job_id: UUID, *, force: bool = False) -> bool:
        cancel = partial(operating.cancel, self._alias, job_id, force=force, new_id=self._new_id, now=self.now())
        changed = once_more(self._alias, cancel)
        self._tell.canceled(changed)
        return changed

    def requeue(self, job_id: UUID) -> bool:
        now = self.now()
        changed = once_more(self._alias, lambda: operating.requeue(self._alias, job_id, now=now))
        self._tell.due(changed)
        return changed

    def surplus(self, state: str, count: int) -> UUID | None:
        return pruning.surplus(self._alias, state, count)

    def prune(
        self, cut: Cut, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: Collection[UUID] | None = None
    ) -> Pruned:
        return pruning.prune(self._alias, cut, after=after, limit=limit, pretend=pretend)

    def prune_workers(
        self, seen_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        return pruning.prune_workers(self._alias, seen_before, after=after, limit=limit, pretend=pretend)

    def prune_batches(
        self, ended_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        return pruning.prune_batches(self._alias, ended_before, after=after, limit=limit, pretend=pretend)

    def next_due_at(self, queues: QueueFilter = EVERY_QUEUE, *, waiting: bool = False) -> datetime | None:
        holds = (Hold.NONE, Hold.LATER, Hold.LIMIT) if waiting else (Hold.NONE, Hold.LATER)
        found = heads(connections[self._alias], queues, self.now(), holds)
        return min((head.due_at for head in found), default=None)

    def get(self, job_id: UUID) -> JobSnapshot | None:
        row = Job.objects.using(self._alias).filter(pk=job_id).first()
        return None if row is None else job_snapshot(row)

    def list(self, which: JobFilter, *, limit: int = 100, before: UUID | None = None) -> list[JobSnapshot]:
        rows = Job.objects.using(self._alias).filter(**_conditions(which))
        if before is not None:
            rows = rows.filter(pk__lt=before)
        return [job_snapshot(row) for row in rows.order_by("-id")[:limit]]

    def attempts_of(self, job_id: UUID) -> Sequence[AttemptSnapshot]:
        names = list(AttemptSnapshot.__slots__)
        rows = Attempt.objects.using(self._alias).filter(job_id=job_id).order_by("number").values(*names)
        return [AttemptSnapshot(**row) for row in rows]

    def args_of(self, job_id: UUID) -> Mapping[str, Any]:
        found = JobArgs.objects.using(self._alias).filter(pk=job_id).values(*PAYLOAD).first()
        return found or {"args": [], "kwargs": {}, "context": None, "options": {}, "meta": {}}

    def pause_queue(self, name: str, *, by: str = "", reason: str = "", until: datetime | None = None) -> None:
        pause = {"paused_at": self.now(), "paused_by": by, "reason": reason, "until": until}
        Queue.objects.using(self._alias).update_or_create(name=name, defaults=pause)
        self._tell.due(until is not None)

    def resume_queue(self, name: str) -> bool:
        paused = Queue.objects.using(self._alias).filter(name=name, paused_at__isnull=False)
        resumed = bool(paused.update(paused_at=None, paused_by="", reason="", until=None))
        self._tell.due(resumed)
        return resumed

    def pauses(self) -> Sequence[QueuePause]:
        now = self.now()
        rows = Queue.objects.using(self._alias).filter(paused_at__isnull=False)
        pauses = [
            QueuePause(queue=row.name, paused_at=row.paused_at, by=row.paused_by, reason=row.reason, until=row.until)
            for row in rows
            if row.paused_at is not None and (row.until is None or row.until > now)
        ]
        # Sorted here: not every database sorts text by its bytes.
        return sorted(pauses, key=lambda pause: pause.queue)

    def report_worker(self, report: WorkerReport) -> None:
        workers.report(self._alias, report, self.now())

    def live_workers(self, within: timedelta) -> Sequence[WorkerReport]:
        return workers.live(self._alias, self.now() - within)


def _conditions(which: JobFilter) -> dict[str, Any]:
    conditions: dict[str, Any] = {}
    if which.states:
        conditions["state__in"] = list(which.states)
    if which.queues:
        conditions["queue__in"] = list(which.queues)
    if which.fn_path:
        conditions["fn_path"] = which.fn_path
    if which.space is not None:
        conditions["space"] = which.space
    if which.cron_id is not None:
        conditions["cron_id"] = which.cron_id
    if which.parent_id is not None:
        conditions["parent_id"] = which.parent_id
    return conditions
