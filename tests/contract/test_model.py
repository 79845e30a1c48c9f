"""A machine that asks the memory store and the database the same things, whatever they are.

HELISCHED_SOAK is the number of examples of a long run, each with other steps.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from django_helisched.jobs.batch import BatchSnapshot, NewBatch
from django_helisched.jobs.follow_up import follow_up_of, result_of
from django_helisched.jobs.job import TERMINAL, NewJob, State
from django_helisched.jobs.leases import confirm_write
from django_helisched.jobs.outcome import AttemptOutcome, Ending, ErrorReport, canceled, decide, decide_loss
from django_helisched.jobs.progress import ProgressReport
from django_helisched.jobs.retention import Keep, cut_of
from django_helisched.stores.base import EVERY_QUEUE, DeclaredLimits, QueueFilter, SettleAnswer, Settlement
from django_helisched.stores.memory import MemoryJobStore
from django_helisched.stores.orm import OrmJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START
from tests.contract.model import SETTINGS, History, TwinIds, Twins, is_out

if TYPE_CHECKING:
    from uuid import UUID

    from django_helisched.jobs.job import ClaimedJob, Enqueued
    from django_helisched.jobs.leases import Sighting
    from django_helisched.jobs.outcome import Outcome
    from django_helisched.jobs.retention import Cut

LEASE = timedelta(seconds=30)
GRACE = timedelta(hours=1)
STEPS = [timedelta(milliseconds=1), LEASE / 3, LEASE, LEASE + timedelta(milliseconds=1), 2 * LEASE, 2 * GRACE]
QUEUES = ["a", "b", "c"]
LIMITS = ["l", "L"]
CAPACITY = 2  # the greatest that any process declares
FILTERS = [EVERY_QUEUE, QueueFilter(include=("a",)), QueueFilter(exclude=("a",))]
REPORT = ErrorReport(error_class="E", error="E: no", traceback="Traceback", line="E: no")
ENDINGS = [
    Ending(outcome=AttemptOutcome.SUCCESS, result={"value": [1]}),
    Ending(outcome=AttemptOutcome.FAILED, report=REPORT),
    Ending(outcome=AttemptOutcome.TIMEOUT, report=REPORT),
    Ending(outcome=AttemptOutcome.FAILED, report=REPORT, retryable=False),
    Ending(outcome=AttemptOutcome.FAILED, report=REPORT, retry_in=timedelta(seconds=5)),
    Ending(outcome=AttemptOutcome.FAILED, report=REPORT, retry_in=timedelta(0), counts=False),
    Ending(outcome=AttemptOutcome.CANCELED),
]
LIVES = [None, *(ending for ending in ENDINGS if ending.outcome is AttemptOutcome.SUCCESS or not ending.retryable)]

loss = partial(decide_loss, max_losses=3, rng=lambda: 0.5)

delays = st.sampled_from([timedelta(0)] * 3 + [timedelta(seconds=1), LEASE])
options = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(QUEUES),
        "priority": st.sampled_from([-100, 0, 100]),
        "max_failures": st.sampled_from([1, 2]),
        "idempotency_key": st.sampled_from(["k", "K"]),
        "unique_until": st.sampled_from(["pruned", "terminal"]),
        "space": st.sampled_from(["", "s"]),
        "on_complete": st.just("shop.jobs.done"),
        "context": st.sampled_from([0, {"c": [None]}]),
        "args": st.just([1, "é"]),
        "at_most_once": st.just(True),
        "fn_path": st.just("shop.jobs.gone"),
        "limit_key": st.sampled_from(LIMITS),
    },
)


class StoreMachine(RuleBasedStateMachine):
    """Jobs, the claims of workers that may die, and time."""

    jobs: Bundle[UUID] = Bundle("jobs")
    claims: Bundle[ClaimedJob] = Bundle("claims")
    batches: Bundle[UUID] = Bundle("batches")
    stale: Bundle[ClaimedJob] = Bundle("stale")  # in the hands of workers that believe to hold them

    def __init__(self) -> None:
        super().__init__()
        self._transaction = transaction.atomic()
        self._transaction.__enter__()
        self.clock = ManualClock(START)
        self.new_id = TwinIds()
        self.twins = Twins(
            MemoryJobStore(self.clock, self.new_id.trusted), OrmJobStore("default", self.clock, self.new_id.other)
        )
        self.history = History(self.twins)
        self.seen: dict[UUID, Sighting] = {}
        self.requeued: UUID | None = None

    def teardown(self) -> None:
        try:
            self.history.look(everything=True)
            # Few walks come to a prune with much to look at; so each ends with one.
            self.prune(STEPS[0], Keep(age=timedelta(0)), timedelta(0), 3)
            self.history.look()
        finally:
            transaction.set_rollback(True)
            self._transaction.__exit__(None, None, None)

    @initialize(target=jobs, lives=st.lists(st.tuples(st.sampled_from(LIVES), options), max_size=4))
    def begin(self, lives: list[tuple[Ending | None, dict[str, Any]]]) -> Any:
        """Make a line of jobs, each the child of the one before, some of which are over: few walks come so far."""
        line: list[UUID] = []
        for ending, given in lives:
            parent_id = line[-1] if line else None
            queue = "a" if ending is None else "short"
            line.append(self._enqueue(self._new(timedelta(0), **{**given, "queue": queue, "parent_id": parent_id})))
            self.history.look()
            only = QueueFilter(include=("short",))
            claims = self.twins.both("claim", worker_id="w3", limit=64, lease=LEASE, queues=only)
            self.history.look()
            self._settle([(claim, decide(claim, ending, rng=lambda: 0.5)) for claim in claims if ending is not None])
        return multiple(*line)

    @invariant()
    def both_stores_hold_the_same(self) -> None:
        self.history.look(requeued=self.requeued)
        self.requeued = None
        self.twins.both("next_due_at")
        self.twins.both("next_due_at", waiting=True)
        for key in LIMITS:
            out = [job for job in self.history.jobs.values() if job.limit_key == key and is_out(job)]
            assert self.twins.both("out_under", key) == len(out) <= CAPACITY

    @rule(target=jobs, delay=delays, given=options)
    def enqueue(self, delay: timedelta, given: dict[str, Any]) -> UUID:
        return self._enqueue(self._new(delay, **given))

    @rule(target=jobs, delay=delays, given=options, life=st.sampled_from([timedelta(0), LEASE]))
    def enqueue_until(self, delay: timedelta, given: dict[str, Any], life: timedelta) -> UUID:
        return self._enqueue(self._new(delay, expires_at=self.clock.now() + life, **given))

    @rule(target=jobs, parent=jobs, given=options)
    def enqueue_child(self, parent: UUID, given: dict[str, Any]) -> UUID:
        return self._enqueue(self._new(timedelta(0), parent_id=parent, **given))

    @rule(target=jobs, claim=claims | stale, given=options)
    def enqueue_from_inside(self, claim: ClaimedJob, given: dict[str, Any]) -> Any:
        child = self._new(timedelta(0), parent_id=claim.id, parent_fence=claim.fence, **given)
        answer = self.twins.both("enqueue", [child])
        return multiple(answer[0].job.id) if isinstance(answer, list) else multiple()

    @rule(target=jobs, many=st.lists(options, min_size=2, max_size=4))
    def enqueue_many(self, many: list[dict[str, Any]]) -> Any:
        answer = self.twins.both("enqueue", [self._new(timedelta(0), **given) for given in many])
        return multiple(*(result.job.id for result in answer))

    @rule(target=batches, given=st.fixed_dictionaries({}, optional={"on_complete": st.just("shop.jobs.done")}))
    def create_batch(self, given: dict[str, Any]) -> UUID:
        new = NewBatch(id=self.new_id(), created_at=self.clock.now(), context={"b": 1}, **given)
        batch: BatchSnapshot = self.twins.both("create_batch", new)
        self.history.batches.add(batch.id)
        return batch.id

    @rule(batch=batches)
    def close_batch(self, batch: UUID) -> None:
        self.twins.both("close_batch", batch)

    @rule(target=jobs, batch=batches, given=options)
    def enqueue_into_batch(self, batch: UUID, given: dict[str, Any]) -> Any:
        answer = self.twins.both("enqueue", [self._new(timedelta(0), batch_id=batch, **given)])
        return multiple(answer[0].job.id) if isinstance(answer, list) else multiple()

    @rule(target=jobs, claim=claims | stale, batch=batches, given=options)
    def grow_from_inside(self, claim: ClaimedJob, batch: UUID, given: dict[str, Any]) -> Any:
        own = batch if claim.batch_id is None else claim.batch_id
        child = self._new(timedelta(0), parent_id=claim.id, parent_fence=claim.fence, batch_id=own, **given)
        answer = self.twins.both("enqueue", [child])
        return multiple(answer[0].job.id) if isinstance(answer, list) else multiple()

    @rule(job=jobs, given=options)
    def roll_back(self, job: UUID, given: dict[str, Any]) -> None:
        with self.twins.undone():
            self._enqueue(self._new(timedelta(0), parent_id=job, **given))
            self.twins.both("cancel", job, force=True)
            self.twins.both("requeue", job)

    @rule(
        capacity=st.sampled_from([None, 1, CAPACITY]),
        began=st.sampled_from([-1, 0, 1]),
        queues=st.sampled_from(FILTERS),
    )
    def admit(self, capacity: int | None, began: int, queues: QueueFilter) -> None:
        declared = DeclaredLimits(capacity_of=lambda _: capacity, since=START + began * LEASE)
        self.twins.both("admit", queues=queues, limits=declared)

    @rule(unserved=st.sampled_from(["", *QUEUES]))
    def withdraw(self, unserved: str) -> None:
        self.twins.both("withdraw", lambda queue: queue != unserved)

    @rule(
        target=claims,
        worker=st.sampled_from(["w1", "w2"]),
        limit=st.sampled_from([1, 2, 3, 64]),
        turn=st.integers(0, 8),
        queues=st.sampled_from(FILTERS),
    )
    def claim(self, worker: str, limit: int, turn: int, queues: QueueFilter) -> Any:
        self.twins.both("admit")
        wanted = {"worker_id": worker, "limit": limit, "lease": LEASE, "turn": turn, "queues": queues}
        return multiple(*self.twins.both("claim", **wanted))

    @rule(claim=claims)
    def start(self, claim: ClaimedJob) -> None:
        self.twins.both("start", claim)

    @rule(claim=claims, done=st.integers(0, 3))
    def progress(self, claim: ClaimedJob, done: int) -> None:
        self.twins.both("progress", [(claim, ProgressReport(done=done, total=3, message="m"))])
        self.twins.both("progress_of", claim.id)

    @rule(some=st.lists(claims | stale, min_size=1, max_size=4, unique_by=lambda claim: claim.id))
    def heartbeat(self, some: list[ClaimedJob]) -> None:
        self.twins.both("heartbeat", some, lease=LEASE)

    @rule(target=stale, claim=consumes(claims), ending=st.sampled_from(ENDINGS))
    def settle(self, claim: ClaimedJob, ending: Ending) -> ClaimedJob:
        [answer] = self._settle([(claim, decide(claim, ending, rng=lambda: 0.5))])
        if answer is SettleAnswer.CANCEL_REQUESTED:
            assert self._settle([(claim, canceled(ending))]) == [SettleAnswer.DONE]
        return claim

    @rule(
        target=stale,
        some=st.lists(consumes(claims), min_size=2, max_size=3, unique_by=lambda claim: claim.id),
        ending=st.sampled_from(ENDINGS),
    )
    def settle_batch(self, some: list[ClaimedJob], ending: Ending) -> Any:
        self._settle([(claim, decide(claim, ending, rng=lambda: 0.5)) for claim in some])
        return multiple(*some)

    @rule(claim=stale, ending=st.sampled_from(ENDINGS))
    def settle_late(self, claim: ClaimedJob, ending: Ending) -> None:
        job = self.history.jobs.get(claim.id)
        holds = job is not None and job.state == State.IN_PROGRESS and job.fence == claim.fence
        [answer] = self._settle([(claim, decide(claim, ending, rng=lambda: 0.5))])
        assert (answer is SettleAnswer.LOST) == (not holds)

    @rule(target=stale, claim=consumes(claims))
    def die(self, claim: ClaimedJob) -> ClaimedJob:
        """Leave the claim to the sweep; the worker may wake up later."""
        return claim

    @rule(target=stale, some=st.lists(consumes(claims), min_size=1, max_size=3, unique_by=lambda claim: claim.id))
    def release(self, some: list[ClaimedJob]) -> Any:
        self.twins.both("release", some)
        return multiple(*some)

    @rule(target=stale, claim=consumes(claims))
    def hold_unknown(self, claim: ClaimedJob) -> ClaimedJob:
        self.twins.both("hold_unknown", [claim])
        return claim

    @rule(known=st.sampled_from([["shop.jobs.gone"], ["shop.jobs.work", "shop.jobs.done"], []]))
    def unhold_known(self, known: list[str]) -> None:
        self.twins.both("unhold_known", known)

    @rule(job=jobs, force=st.booleans())
    def cancel(self, job: UUID, force: bool) -> None:
        was_live = job in self.history.jobs and self.history.jobs[job].state not in TERMINAL
        assert self.twins.both("cancel", job, force=force) == was_live  # I-20
        if was_live:
            below = [self.twins.trusted.get(each) for each in self.history.descendants_of(job)]
            assert not [each for each in below if each is not None and each.state == State.PENDING]  # I-18

    @rule(job=jobs)
    def requeue(self, job: UUID) -> None:
        if self.twins.both("requeue", job):
            self.requeued = job

    @rule(
        later=st.sampled_from(STEPS),
        keep=st.sampled_from([Keep(age=timedelta(0)), Keep(age=LEASE), Keep(count=0), Keep(count=2)]),
        key_ttl=st.sampled_from([timedelta(0), GRACE]),
        limit=st.sampled_from([1, 3, 100]),
    )
    def prune(self, later: timedelta, keep: Keep, key_ttl: timedelta, limit: int) -> None:
        self.clock.advance(later)
        for state in sorted(TERMINAL):
            surplus = None if keep.count is None else self.twins.both("surplus", state, keep.count)
            cut = cut_of(state, keep, now=self.clock.now(), key_ttl=key_ttl, surplus=surplus)
            if cut is not None:
                would = self._walk(cut, limit, pretend=True)
                gone = self._walk(cut, limit, pretend=False)
                assert gone == would
                self.history.prune(gone, keys_since=cut.keys_since)

    @rule(can_write=st.booleans())
    def sweep(self, can_write: bool) -> None:
        answer = self.twins.both("sweep", self.seen, lease=LEASE, decide_loss=loss)
        self.seen = confirm_write(answer.seen) if can_write else dict(answer.seen)

    @rule(limit=st.sampled_from([1, 500]))
    def expire(self, limit: int) -> None:
        self.twins.both("expire", unknown_grace=GRACE, limit=limit)

    @rule(queue=st.sampled_from(QUEUES), until=st.sampled_from([None, LEASE]))
    def pause_queue(self, queue: str, until: timedelta | None) -> None:
        end = None if until is None else self.clock.now() + until
        self.twins.both("pause_queue", queue, by="ada", reason="stocktaking", until=end)

    @rule(queue=st.sampled_from(QUEUES))
    def resume_queue(self, queue: str) -> None:
        self.twins.both("resume_queue", queue)

    @rule()
    def pauses(self) -> None:
        self.twins.both("pauses")

    @rule(step=st.sampled_from(STEPS))
    def advance(self, step: timedelta) -> None:
        self.clock.advance(step)

    def _walk(self, cut: Cut, limit: int, *, pretend: bool) -> set[UUID]:
        gone: set[UUID] = set()
        after, is_over = None, False
        while not is_over:
            step = self.twins.both("prune", cut, after=after, limit=limit, pretend=frozenset(gone) if pretend else None)
            gone |= step.ids
            after, is_over = step.after, step.after is None
        return gone

    def _new(self, delay: timedelta, **given: Any) -> NewJob:
        now = self.clock.now()
        if given.get("at_most_once"):
            given = {**given, "max_failures": 1}
        due_at = now + delay
        return NewJob(
            **{"id": self.new_id(), "fn_path": "shop.jobs.work", "queue": "a", **given},
            created_at=now,
            due_at=due_at,
            next_run_at=due_at,
        )

    def _enqueue(self, new: NewJob) -> UUID:
        stored: list[Enqueued] = self.twins.both("enqueue", [new])
        return stored[0].job.id

    def _settle(self, ended: list[tuple[ClaimedJob, Outcome]]) -> list[SettleAnswer]:
        settlements = [
            Settlement(
                claim=claim,
                outcome=outcome,
                started_at=self.clock.now(),
                follow_up=self._callback(claim, outcome) if outcome.state in TERMINAL else None,
            )
            for claim, outcome in ended
        ]
        answers: list[SettleAnswer] = self.twins.both("settle", settlements)
        return answers

    def _callback(self, claim: ClaimedJob, outcome: Outcome) -> NewJob | None:
        if not claim.on_complete:
            return None
        return follow_up_of(
            claim,
            context=claim.context,
            options=claim.options,
            result=result_of(outcome),
            new_id=self.new_id(),
            now=self.clock.now(),
        )


@pytest.mark.django_db(transaction=True)
def test_memory_and_database_agree_after_every_step():
    run_state_machine_as_test(StoreMachine, settings=SETTINGS)
