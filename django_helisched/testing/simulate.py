"""A year of crons in a test: the code that fires them for real, on a clock that jumps from event to event."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django_helisched import functions
from django_helisched.crons.registry import CronJobs
from django_helisched.driver.config import DriverConfig
from django_helisched.driver.events import Announcer, What
from django_helisched.driver.firing import Firing
from django_helisched.jobs.job import TERMINAL, State
from django_helisched.jobs.outcome import AttemptOutcome, Outcome
from django_helisched.scheduler.reconciling import Declarer, Reconciling
from django_helisched.stores.base import CLAIM_LIMIT, DeclaredLimits, SettleAnswer, Settlement
from django_helisched.stores.memory import MemoryCronStore, MemoryJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.timeline import SimulatedFire, SimulatedJob, SimulatedMiss, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from django_helisched.crons.cron import CronDeclaration
    from django_helisched.driver.events import Event
    from django_helisched.jobs.job import ClaimedJob, JobSnapshot
    from django_helisched.stores.memory.rows import Tables

    Outage = tuple[datetime, datetime]
    Runtime = timedelta | Mapping[str, timedelta]

_SUCCESS = Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS)
_CANCELED = Outcome(state=State.CANCELED, attempt=AttemptOutcome.CANCELED)
_NEVER_LAPSES = timedelta(days=40_000)
_NO_TIME = timedelta(0)


def simulate(  # everything that may happen to crons
    crons: CronJobs | Iterable[CronDeclaration],
    start: datetime,
    end: datetime,
    *,
    outages: Iterable[Outage] = (),
    skew: timedelta | Iterable[timedelta] = (),
    runtime: Runtime = _NO_TIME,
) -> Timeline:
    """Deploy ``crons`` at ``start`` and return what happens until ``end``, both aware.

    No scheduler looks during an outage, a pair of instants. Each ``skew`` adds a scheduler
    whose reading of the database's time is so far ahead, or behind, as after a failover to a
    server with another time. Jobs start as soon as they may and run for ``runtime``, or for
    what it says under the name of their cron; a canceled one ends when it is told. No body
    runs, and no database is asked. Raises what a bad declaration raises.
    """
    offsets = [_NO_TIME, *([skew] if isinstance(skew, timedelta) else skew)]
    simulation = _Simulation(_as_list(crons), start, sorted(outages), offsets, runtime)
    return simulation.until(end)


class _Simulation:
    """Memory stores, one firing, and what has come out of them so far."""

    def __init__(
        self,
        declared: CronJobs,
        start: datetime,
        outages: Sequence[Outage],
        offsets: Sequence[timedelta],
        runtime: Runtime,
    ) -> None:
        self._clock = ManualClock(start)
        self._jobs = MemoryJobStore(self._clock)
        self._crons = MemoryCronStore(self._clock, self._jobs)
        self._firing = Firing(self._jobs, self._crons, DriverConfig(worker_id="simulated"), Announcer(self._hear))
        self._outages = outages
        self._offsets = offsets
        self._runtime = runtime
        self._running: dict[UUID, tuple[ClaimedJob, datetime]] = {}
        self._fires: list[SimulatedFire] = []
        self._missed: list[SimulatedMiss] = []
        self._ended: list[SimulatedJob] = []
        declarer = Declarer(name="simulated", booted_at=self._clock.now())
        round_ = Reconciling(self._jobs, self._crons, declarer, alive_within=_NEVER_LAPSES)
        self._notices = round_.apply(declared).notices

    def until(self, end: datetime) -> Timeline:
        """Go from event to event."""
        while (event := min(self._events(), default=None)) is not None and event[0] <= end:
            self._clock.advance(event[0] - self._clock.now())
            self._fire(event[1])
            self._end_what_is_over()
            self._start_what_may_start()
            with self._jobs.rows.transaction() as tables:
                self._take_out(tables)
        with self._jobs.rows.reading() as tables:
            left = [_told(job, tables) for job in tables.all_jobs()]
        rows = tuple(self._crons.list())
        return Timeline(tuple(self._fires), tuple(self._missed), (*self._ended, *left), rows, tuple(self._notices))

    def _events(self) -> Iterator[tuple[datetime, timedelta]]:
        """Give the instants at which something happens next, each with the offset of the scheduler that looks then."""
        now = self._clock.now()
        due_at = self._crons.next_due_at()
        if due_at is not None:
            for offset in self._offsets:
                yield self._after_outages(max(now, due_at - offset)), offset
        startable = self._jobs.next_due_at()
        if startable is not None:
            yield max(now, startable), _NO_TIME
        for _, ends_at in self._running.values():
            yield ends_at, _NO_TIME

    def _after_outages(self, moment: datetime) -> datetime:
        for begin, end in self._outages:
            if begin <= moment < end:
                moment = end
        return moment

    def _fire(self, offset: timedelta) -> None:
        if self._after_outages(self._clock.now()) > self._clock.now():
            return
        self._clock.advance(offset)
        while self._firing.fire(self._clock.now()).look_again:
            pass
        self._clock.advance(-offset)

    def _end_what_is_over(self) -> None:
        now = self._clock.now()
        claims = [claim for claim, _ in self._running.values()]
        told = self._jobs.heartbeat(claims, lease=_NEVER_LAPSES).cancel_requested if claims else frozenset()
        for claim, ends_at in list(self._running.values()):
            if ends_at <= now or claim.id in told:
                del self._running[claim.id]
                self._settle(claim)

    def _start_what_may_start(self) -> None:
        claims: list[ClaimedJob] = []
        limits = DeclaredLimits(capacity_of=functions.capacity_of, since=self._clock.now())
        while claims or self._jobs.admit(limits=limits) or self._jobs.next_due_at() is not None:
            claims = self._jobs.claim(worker_id="simulated", limit=CLAIM_LIMIT, lease=_NEVER_LAPSES)
            if not claims:
                return
            for claim in claims:
                self._run(claim)

    def _run(self, claim: ClaimedJob) -> None:
        runtime = self._runtime if isinstance(self._runtime, timedelta) else self._runtime.get(claim.name, _NO_TIME)
        if runtime > _NO_TIME:
            self._running[claim.id] = (claim, self._clock.now() + runtime)
        else:
            self._settle(claim)

    def _settle(self, claim: ClaimedJob) -> None:
        for outcome in (_SUCCESS, _CANCELED):
            settlement = Settlement(claim=claim, outcome=outcome, started_at=None)
            if self._jobs.settle([settlement]) != [SettleAnswer.CANCEL_REQUESTED]:
                return

    def _take_out(self, tables: Tables) -> None:
        """Move what is over from the tables to the timeline: a transaction costs as much as they hold."""
        now = self._clock.now()
        for fire in sorted(tables.fires.values(), key=lambda fire: fire.due_at):
            cron = tables.crons[fire.cron_id]
            place: dict[str, Any] = {"name": cron.name, "space": cron.space, "due_at": fire.due_at}
            if fire.job_id is not None:
                self._fires.append(SimulatedFire(**place, fired_at=now, job_id=fire.job_id))
            else:
                miss = SimulatedMiss(
                    **place,
                    last_due_at=fire.last_due_at,
                    count=fire.count,
                    outcome=str(fire.outcome),
                    reason=fire.reason,
                )
                self._missed.append(miss)
        tables.fires.clear()
        over = [job for job in tables.all_jobs() if job.state in TERMINAL]
        self._ended += [_told(job, tables) for job in over]
        for job in over:
            for table in (tables.jobs, tables.payloads, tables.attempts):
                table.pop(job.id, None)

    def _hear(self, event: Event) -> None:
        if event.what is What.CRON_PARKED:
            self._notices.append(str(event))


def _told(job: JobSnapshot, tables: Tables) -> SimulatedJob:
    payload = json.loads(tables.payloads.get(job.id, "{}"))
    return SimulatedJob(
        id=job.id,
        name=job.name,
        space=job.space,
        fn_path=job.fn_path,
        args=payload.get("args", []),
        kwargs=payload.get("kwargs", {}),
        due_at=job.due_at,
        started_at=job.started_at,
        ended_at=job.completed_at,
        state=str(job.state),
    )


def _as_list(crons: CronJobs | Iterable[CronDeclaration]) -> CronJobs:
    if isinstance(crons, CronJobs):
        return crons
    listed = CronJobs()
    for declaration in crons:
        listed.add(declaration)
    return listed
