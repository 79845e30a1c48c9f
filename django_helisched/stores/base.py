"""The store contract: what every store of jobs and crons guarantees.

Decisions are made elsewhere, by pure functions; a store's only job is
atomicity. Records are frozen dataclasses; ids come from the ``new_id`` a store
is built with. All instants are aware UTC datetimes cut to milliseconds, read
from the store's own clock unless a caller hands over data (``due_at``).

Four rules hold for every verb:

* A verb joins the caller's open transaction, or makes one of its own: all of it
  happens, or nothing.
* Every write that ends an attempt applies only while the row is in progress
  under the claim's ``fence``. The answer tells; nobody raises for a lost race.
* Rows are locked in the order Cron, Job by id, Limit, Batch, so that no two verbs deadlock;
  whoever holds a Limit takes Jobs only by skipping those that others hold.
* A job that ends canceled, by whatever verb, takes its descendants along as
  ``cancel`` does, after the other endings of the same call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from django_helisched.stores.queue_filter import EVERY_QUEUE, QueueFilter

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from uuid import UUID

    from django_helisched.crons.backfill import BackfillPlan
    from django_helisched.crons.catch_up import FiringPlan
    from django_helisched.crons.changes import CronUpdate
    from django_helisched.crons.cron import CronSnapshot, FireSnapshot
    from django_helisched.crons.reconcile import ReconcilePlan
    from django_helisched.jobs.batch import BatchSnapshot, NewBatch
    from django_helisched.jobs.job import AttemptSnapshot, ClaimedJob, Enqueued, JobSnapshot, NewJob, Particulars
    from django_helisched.jobs.leases import Sighting
    from django_helisched.jobs.outcome import Outcome
    from django_helisched.jobs.progress import ProgressReport, ProgressSnapshot
    from django_helisched.jobs.retention import Cut

CLAIM_LIMIT = 256  # jobs of one claim at most, so that one pass stays bounded: some 10 ms
PRUNE_LIMIT = 100  # rows that one step of a prune looks at, so that no lock is held long
TURNS_BY_AGE = 8  # every eighth claim goes by age alone, so that nothing starves
ADMIT_LIMIT = 256  # jobs that one look lets out under limits, so that it stays bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredLimits:
    """What the code of one process, which began at ``since``, declares.

    ``capacity_of`` gives how many jobs may be out under one limit key of a function, by
    its path; None where this code says nothing.
    """

    capacity_of: Callable[[str], int | None]
    since: datetime


NO_LIMITS = DeclaredLimits(capacity_of=lambda _: None, since=datetime(1970, 1, 1, tzinfo=UTC))


class SettleAnswer(Enum):
    """What became of one settlement."""

    DONE = "done"
    CANCEL_REQUESTED = "cancel_requested"  # decide anew: the job must end canceled
    LOST = "lost"  # the claim no longer holds: drop the result


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """One attempt's end: the claim it fences by, the decided outcome, the on_complete job.

    ``started_at`` is when the body began. ``follow_up`` is enqueued in the
    settling transaction, only for a terminal outcome. ``log`` is what the body
    logged, ``progress`` the last report where it is not stored yet.
    """

    claim: ClaimedJob
    outcome: Outcome
    started_at: datetime | None
    follow_up: NewJob | None = None
    log: str = ""
    progress: ProgressReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """What a renewal learned. A row that another transaction holds is in neither set."""

    lost: frozenset[UUID] = frozenset()
    cancel_requested: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAnswer:
    """The jobs a sweep took back, and the sightings to bring to the next one."""

    swept: tuple[tuple[JobSnapshot, Outcome], ...] = ()
    seen: Mapping[UUID, Sighting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """What a driver says of itself with every heartbeat."""

    id: str
    host: str = ""
    pid: int = 0
    started_at: datetime
    version: str = ""
    tzdata_version: str = ""
    functions: Sequence[str] = ()
    queues: Sequence[str] = ()
    declarations: Sequence[str] = ()  # "source:space:name" of the crons this process declares
    seats: int = 0
    in_flight: int = 0
    state: str = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePause:
    """Since when claims stay away from a queue, who wanted it and why; ``until`` None: until it is resumed."""

    queue: str
    paused_at: datetime
    by: str = ""
    reason: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What one step of a prune deleted, and where the next step goes on.

    ``ids`` are of the jobs among what was deleted. ``refused`` counts the rows that
    had to stay because a table of the project's own points at them. ``after`` is the
    store's own: hand it back as it is. None: the walk has come to its end.
    """

    count: int = 0
    ids: frozenset[UUID] = frozenset()
    refused: int = 0
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """What a list of jobs is narrowed to; empty means all."""

    states: Collection[str] = ()
    queues: Collection[str] = ()
    fn_path: str = ""
    space: str | None = None
    cron_id: UUID | None = None
    parent_id: UUID | None = None

    def admits(self, job: JobSnapshot) -> bool:
        """Tell whether ``job`` is in the list."""
        return (
            (not self.states or job.state in self.states)
            and (not self.queues or job.queue in self.queues)
            and (not self.fn_path or job.fn_path == self.fn_path)
            and (self.space is None or job.space == self.space)
            and (self.cron_id is None or job.cron_id == self.cron_id)
            and (self.parent_id is None or job.parent_id == self.parent_id)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFiring:
    """A cron as it was read, what to do with it, and the jobs of ``plan.fires``, in order."""

    cron: CronSnapshot
    plan: FiringPlan
    jobs: Sequence[NewJob]


class Teller(Protocol):
    """Whom a store tells, once it is committed, of what other processes cannot know.

    Told of everything that becomes due, sooner or later, and of every cancel. Neither
    raises, and neither may rely on being called: a process can die after its commit.
    """

    def something_is_due(self) -> None:
        """Let the others look for work, and for when the next is due."""
        ...

    def something_is_canceled(self) -> None:
        """Let those who run jobs ask which of them are to stop."""
        ...


class JobStore(Protocol):
    """Jobs, from enqueue to their end."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the store's time, the only one that decides anything."""

    @abstractmethod
    def atomic(self) -> AbstractContextManager[None]:
        """Open the transaction in which a mutation's body and its settle happen.

        An exception that leaves the block undoes everything written in it.
        """

    @abstractmethod
    def is_transient(self, error: BaseException) -> bool:
        """Tell whether ``error`` is a deadlock or serialization failure: the same work may succeed if done again."""

    @abstractmethod
    def on_commit(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once the open transaction commits, or now where none is open.

        However often the same one is given, it is called once. A rolled-back
        transaction drops it; one that raises is logged.
        """

    @abstractmethod
    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store jobs and return, in the same order, the job that stands for each.

        Atomic with the caller's transaction: the rows exist exactly if it
        commits. A taken idempotency key returns the older job, unchanged, and
        leaves the caller's transaction usable; of two that race for one key,
        one waits for the other's commit. Raises LeaseLost, and stores nothing,
        where ``parent_fence`` is given and the parent is not in progress under
        it. Raises BatchClosed, and stores nothing, for a batch that is closed, unless
        the running parent is a job of it; an open one stays so until the caller's
        transaction ends. Otherwise a parent that is canceled or asked to cancel makes a
        born-canceled job: it does not take its key, and its birth calls nobody
        back.
        """

    def enqueue_alike(self, pattern: NewJob, each: Sequence[Particulars]) -> JobSnapshot:
        """Store many jobs that differ in nothing but their particulars; return the row that ``pattern`` became.

        The other rows differ from it in their ids alone. As ``enqueue`` of them all, at a
        lower price. Neither has ``pattern`` an idempotency key nor a limit, and either all
        of them have arguments or none has any; its own particulars are not stored.
        """
        jobs = [replace(pattern, id=one.id, args=one.args, kwargs=one.kwargs) for one in each]
        return replace(self.enqueue(jobs)[0].job, id=pattern.id)

    @abstractmethod
    def admit(self, *, queues: QueueFilter = EVERY_QUEUE, limits: DeclaredLimits = NO_LIMITS) -> int:
        """Lift the holds of jobs whose turn has come; return how many a claim may take that it could not before.

        Overlap first: the oldest held job of each overlap key of which no job is out.
        Out is live and not held for overlap: it stays so through its retries, until
        it ends. The cron's row is locked meanwhile, as firing locks it; a cron that
        others hold is left for the next time. All are let out where the cron allows
        overlap by now, or is gone. One with a limit waits for that afterwards.

        Then limits: of each limit key as many due jobs as it has free slots, the highest
        priority first, then the oldest, then the lowest id, only from served queues
        that are not paused, at most ADMIT_LIMIT in all. Out is in progress, or pending
        without a hold: never more than the capacity, whoever looks at the same time. A
        job leaves its slot with whatever ends its attempt or gives it back, and waits
        anew where it is to run again. The capacity is what ``limits`` declares, or what
        a process that began later has declared; 1 where nobody ever did. A limit that
        others hold is left for the next time.
        """

    @abstractmethod
    def withdraw(self, serves: Callable[[str], bool]) -> int:
        """Hold again, for their limits, the jobs that were let out and that nobody will claim; return how many.

        Those are pending in a queue that is paused, or that ``serves`` says no to. Rows that
        others hold are skipped. Limits that no live job names are forgotten.
        """

    @abstractmethod
    def create_batch(self, new: NewBatch) -> BatchSnapshot:
        """Store a batch, open for jobs, in the caller's transaction, and return it."""

    @abstractmethod
    def close_batch(self, batch_id: UUID) -> bool:
        """Let a batch take no more jobs but from its own running ones; False: it is closed already, or not there.

        Closed, it is complete once none of its jobs is pending or in progress: whoever ends the
        last one, by whatever verb, writes the counts and enqueues ``on_complete`` once, in the
        transaction of that end; an empty batch is complete at once. The batch's row is locked
        after all jobs, so that of two that end the last two jobs one sees the other's end. What
        is requeued later changes nothing about a complete batch. Raises Busy after waiting 2 s.
        """

    @abstractmethod
    def get_batch(self, batch_id: UUID) -> BatchSnapshot | None:
        """Return the batch, or None. Counted from its jobs until it is complete."""

    @abstractmethod
    def out_under(self, limit_key: str) -> int:
        """Return how many jobs of a limit key are out: in progress, or let out and not claimed yet."""

    @abstractmethod
    def claim(
        self,
        *,
        worker_id: str,
        limit: int,
        lease: timedelta,
        queues: QueueFilter = EVERY_QUEUE,
        turn: int = 0,
    ) -> list[ClaimedJob]:
        """Take up to ``limit`` (at most CLAIM_LIMIT) due jobs under a lease of now + ``lease``.

        Due is pending, not held, ``next_run_at`` <= now, not expired, in a
        served queue that is not paused. Each claim adds 1 to the fence; at most
        one worker ever gets a row. Within a queue: highest priority, then oldest
        ``next_run_at``, then id. Of the n queues that have a job to take, the
        visit starts at number ``turn`` mod n in name order and takes an
        equal share of each (``limit`` // n, at least 1), then fills up in the
        same order; every TURNS_BY_AGE-th turn (7, 15, ...) takes the oldest of
        all instead. Jobs come in the order in which they were taken. A job has
        expired strictly after ``expires_at``, as a lease has. ``started_at``
        becomes now, or None where the job runs at most once and ``start`` will
        tell.

        A store that needs long to find out what there is may use what it found for
        up to a second: what others have stored meanwhile is passed over as long, but by
        claims with less than ``limit`` and by those that take the oldest.
        """

    @abstractmethod
    def start(self, claim: ClaimedJob) -> bool:
        """Record that the body of an at-most-once job begins; False: the claim is lost.

        Committed before the body runs, so that a later sweep knows.
        """

    @abstractmethod
    def heartbeat(self, claims: Sequence[ClaimedJob], *, lease: timedelta) -> HeartbeatAnswer:
        """Renew the leases of ``claims`` to now + ``lease`` and tell which are lost or to be canceled.

        One short transaction; rows locked by others are skipped, neither renewed
        nor lost. A lapsed lease that nobody swept is renewed. Touches the lease only.
        """

    @abstractmethod
    def settle(self, settlements: Sequence[Settlement], *, is_last: bool = False) -> list[SettleAnswer]:
        """End attempts and return an answer for each, in order.

        Each job, its Attempt, its progress and its follow-up change together, in
        one transaction for the batch. An outcome other than canceled is refused with
        CANCEL_REQUESTED while a cancel request stands. A stale fence answers
        LOST and writes nothing, not even the follow-up. The line of a failure that
        ends or repeats the job becomes ``last_error``; success clears it,
        canceled and snoozed leave it. Nothing holds a job that is over.

        ``is_last``: nothing follows in the caller's ``atomic()`` block. What the block did may be committed
        already when DONE is answered, and must be undone by the caller, if it is not yet, after another answer.
        """

    @abstractmethod
    def progress(self, reports: Sequence[tuple[ClaimedJob, ProgressReport]]) -> list[bool]:
        """Write how far running jobs have come, and tell of each whether its claim still held.

        Of a lost claim nothing is written. The job's own row is only read.
        """

    @abstractmethod
    def progress_of(self, job_id: UUID) -> ProgressSnapshot | None:
        """Return the newest report of the job's latest claim, also once that has ended, or None."""

    @abstractmethod
    def release(self, claims: Sequence[ClaimedJob]) -> int:
        """Give back claims whose body has not begun and return how many were still held.

        Pending again at the same ``next_run_at``, as if never started; no
        Attempt, no counter. A cancel-requested one ends canceled.
        """

    @abstractmethod
    def hold_unknown(self, claims: Sequence[ClaimedJob]) -> int:
        """Release claims, hold them as unknown_function from now on, and return how many were still held."""

    @abstractmethod
    def unhold_known(self, fn_paths: Collection[str]) -> int:
        """Lift the hold of every job whose function is in ``fn_paths``; return how many."""

    def has_chores(self) -> bool:
        """Tell whether ``sweep``, ``expire``, ``unhold_known``, ``withdraw`` or ``pauses`` may find anything.

        False is certain, as of now: nothing has lapsed, nothing is late, held for an unknown
        function, or out under a limit, no limit is stored and no queue is paused.
        """
        return True

    @abstractmethod
    def sweep(
        self,
        seen: Mapping[UUID, Sighting],
        *,
        lease: timedelta,
        decide_loss: Callable[[JobSnapshot], Outcome],
    ) -> SweepAnswer:
        """Take back leases that lapsed, by the rule of ``jobs.leases``.

        Skips rows that others hold. Each job, its Attempt ``lost`` naming the
        old worker, and its callback change in one transaction; a worker that
        wakes later finds its fence void. The answer shows each job as it was found.
        """

    @abstractmethod
    def expire(self, *, unknown_grace: timedelta, limit: int = 500) -> int:
        """Fail pending jobs whose time is over and return how many, at most ``limit`` of each kind.

        The oldest first, by what ``jobs.outcome.decide_expiry`` says:
        failed/expired or, held for longer than ``unknown_grace``,
        failed/unknown_function. No Attempt; the callback is enqueued in the
        same transaction.
        """

    @abstractmethod
    def cancel(self, job_id: UUID, *, force: bool = False) -> bool:
        """Cancel a job and its descendants; tell whether the job itself changed.

        Pending: canceled at once. In progress: asked to stop (True again for a
        repeated request, whose first instant stays), or with ``force`` canceled
        at once, its fence voided by one more, the run's Attempt ``canceled``.
        Descendants, through finished ones: pending ones canceled, running ones
        asked to stop. Terminal or unknown: False, and no descendant is touched.
        Raises Busy after waiting 2 s for a lock.
        """

    @abstractmethod
    def requeue(self, job_id: UUID) -> bool:
        """Put a terminal job back to pending, due now; tell whether it was done.

        Attempts and losses restart at 0; error, hold, start, expiry and cancel
        request are cleared; history stays. It holds its key (again); one with an
        overlap key or a limit waits for ``admit``. False for a job that is not terminal,
        unknown, or whose freed key another job has taken.
        Raises Busy after waiting 2 s for a lock.
        """

    @abstractmethod
    def surplus(self, state: str, count: int) -> UUID | None:
        """Return the newest job in ``state`` after the ``count`` newest, by id; None where there are no more."""

    @abstractmethod
    def prune(
        self, cut: Cut, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: Collection[UUID] | None = None
    ) -> Pruned:
        """Delete finished jobs that ``jobs.retention`` says may go, with their arguments, attempts and progress.

        One step of a walk by id over the jobs of one state: looks at ``limit``
        of them, beginning behind ``after``, so that a step costs the same
        whatever the table holds, and whatever was kept is met once in a walk. One
        short transaction. Rows that others hold are skipped, until the next walk;
        whoever comes later finds no such job: a requeue answers False, and an
        enqueue that waited for the key makes a new job. What a table of the
        project's own does not let go stays, alone.

        With ``pretend`` nothing is deleted and the answer says what would be, were
        the jobs in it gone already.
        """

    @abstractmethod
    def prune_workers(
        self, seen_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        """Delete the rows of workers that have not reported since then; one step, as ``prune``."""

    @abstractmethod
    def prune_batches(
        self, ended_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        """Delete batches that were complete before then and whose jobs are gone; one step, as ``prune``."""

    @abstractmethod
    def next_due_at(self, queues: QueueFilter = EVERY_QUEUE, *, waiting: bool = False) -> datetime | None:
        """Return the earliest ``next_run_at`` of a pending, unheld job of a served queue, or None.

        A paused queue is left out, or due no earlier than its pause ends. A job
        that has expired does not count. One with a limit counts until it is due; with
        ``waiting`` also afterwards, while it waits for a slot.
        """

    @abstractmethod
    def get(self, job_id: UUID) -> JobSnapshot | None:
        """Return the job, or None."""

    @abstractmethod
    def list(self, which: JobFilter, *, limit: int = 100, before: UUID | None = None) -> list[JobSnapshot]:
        """Return jobs newest first, at most ``limit``, those with a smaller id than ``before``."""

    @abstractmethod
    def attempts_of(self, job_id: UUID) -> Sequence[AttemptSnapshot]:
        """Return the attempts of a job in order."""

    @abstractmethod
    def args_of(self, job_id: UUID) -> Mapping[str, Any]:
        """Return ``args, kwargs, context, options, meta`` of a job, empty ones where it has none."""

    @abstractmethod
    def pause_queue(self, name: str, *, by: str = "", reason: str = "", until: datetime | None = None) -> None:
        """Keep every claim away from the queue, until resumed or until ``until``."""

    @abstractmethod
    def resume_queue(self, name: str) -> bool:
        """Let claims into the queue again; False: nobody paused it."""

    @abstractmethod
    def pauses(self) -> Sequence[QueuePause]:
        """Return the pauses that hold now, in the order of the queues' names; one that has run out is none."""

    @abstractmethod
    def report_worker(self, report: WorkerReport) -> None:
        """Write the worker's own row, ``last_seen`` now."""

    @abstractmethod
    def live_workers(self, within: timedelta) -> Sequence[WorkerReport]:
        """Return the workers that reported within ``within`` and have not stopped."""


class CronStore(Protocol):
    """Crons, from declaration to firing."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the store's time."""

    @abstractmethod
    def reconcile(
        self, source: str, space: str, plan: Callable[[Sequence[CronSnapshot], datetime], ReconcilePlan]
    ) -> ReconcilePlan:
        """Make the rows of one source and space what ``plan(rows, now)`` says, and return that plan.

        Rows are read by id and written under lock in one transaction. Of processes
        that reconcile at the same time, each sees the other's result whole.
        """

    @abstractmethod
    def due(self, *, limit: int) -> Sequence[CronSnapshot]:
        """Return active crons with ``next_run_at`` <= now, soonest first: one indexed query."""

    @abstractmethod
    def live_jobs(self, cron_id: UUID) -> int:
        """Return how many jobs of the cron are pending or in progress."""

    @abstractmethod
    def fire(self, cron: CronSnapshot, plan: FiringPlan, jobs: Sequence[NewJob]) -> bool:
        """Apply a firing: move the cron, insert the jobs and the Fire rows.

        One transaction under compare-and-set on (id, version), and on the cron
        being active. False: somebody else moved it first; nothing was written.
        Where the plan cancels what is live, jobs of the cron that are pending or
        in progress are canceled as ``cancel`` does, before the new ones are stored;
        Busy after waiting 2 s for one of them, with nothing written.
        An occurrence that has a Fire row already (the clock went back) is left
        out, with its job.
        """

    @abstractmethod
    def fire_together(self, firings: Sequence[PlannedFiring]) -> Sequence[bool]:
        """Apply firings of several crons in one transaction, and return an answer for each, as ``fire`` does.

        For plans that cancel nothing. Where one of them cannot be applied it raises, and
        none is: ``fire`` each by itself then.
        """

    @abstractmethod
    def backfill(self, cron: CronSnapshot, plan: BackfillPlan, jobs: Sequence[NewJob]) -> bool:
        """Apply a backfill: insert the jobs, count them as fired and no longer as missed, change the Fire rows.

        One transaction under compare-and-set on (id, version). False: the cron changed
        meanwhile, or a Fire row of the plan was pruned; nothing was written. The due
        time does not move.
        """

    @abstractmethod
    def prune_fires(
        self, decided_before: datetime, *, after: Any = None, limit: int = PRUNE_LIMIT, pretend: bool = False
    ) -> Pruned:
        """Delete what became of occurrences, where that was decided before then; one step, as ``JobStore.prune``.

        Never a row that reaches to the cron's ``next_run_at``: it keeps the
        occurrence from being fired twice where the clock went back. A backfill
        whose plan names a deleted row answers False.
        """

    @abstractmethod
    def park(self, cron: CronSnapshot, error: str) -> bool:
        """Take a cron that cannot be fired out of the due list, its error visible; compare-and-set.

        The first 500 characters of the error are kept.
        """

    @abstractmethod
    def change(self, update: CronUpdate) -> bool:
        """Write one update under compare-and-set on (id, version); False: the cron changed meanwhile.

        The occurrences it drops get their Fire row in the same transaction.
        """

    @abstractmethod
    def next_due_at(self) -> datetime | None:
        """Return the earliest ``next_run_at`` of an active cron, or None."""

    @abstractmethod
    def get(self, cron_id: UUID) -> CronSnapshot | None:
        """Return the cron, or None."""

    @abstractmethod
    def fires_of(
        self, cron_id: UUID, *, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[FireSnapshot]:
        """Return what became of the occurrences from ``since`` to ``until``, in their order.

        A run of missed ones that only overlaps that time is whole.
        """

    @abstractmethod
    def list(self, *, source: str | None = None, space: str | None = None) -> Sequence[CronSnapshot]:
        """Return crons by source, space and name, archived ones included."""

    @abstractmethod
    def find(self, name: str, *, space: str = "") -> Sequence[CronSnapshot]:
        """Return the crons of that name and space, whatever their source."""


__all__ = [
    "ADMIT_LIMIT",
    "CLAIM_LIMIT",
    "EVERY_QUEUE",
    "NO_LIMITS",
    "PRUNE_LIMIT",
    "TURNS_BY_AGE",
    "CronStore",
    "DeclaredLimits",
    "HeartbeatAnswer",
    "JobFilter",
    "JobStore",
    "PlannedFiring",
    "Pruned",
    "QueueFilter",
    "QueuePause",
    "SettleAnswer",
    "Settlement",
    "SweepAnswer",
    "Teller",
    "WorkerReport",
]
