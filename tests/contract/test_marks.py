"""Claims that begin where the last listing of the heads has ended its reading, because listing takes long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_helisched.models import Job
from django_helisched.stores.base import CLAIM_LIMIT, EVERY_QUEUE, QueueFilter
from django_helisched.stores.orm import OrmCronStore, OrmJobStore
from django_helisched.stores.orm.heads import Head, due_heads
from django_helisched.stores.orm.marks import LONGEST, PATIENCE, SLOW, TAKING, WORTH, Marks
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START
from django_helisched.testing.contract.canceling import CancelContract
from django_helisched.testing.contract.claiming import ClaimContract
from django_helisched.testing.contract.expiring import ExpireContract
from django_helisched.testing.contract.factories import LEASE, SECOND, enqueued
from django_helisched.testing.contract.holding import HoldContract
from django_helisched.testing.contract.limiting import LimitContract
from django_helisched.testing.contract.looking import LookContract
from django_helisched.testing.contract.requeueing import RequeueContract
from django_helisched.testing.contract.settling import SettleContract
from django_helisched.testing.contract.sharing import ShareContract
from django_helisched.testing.contract.sweeping import SweepContract
from tests.contract.slow_listings import slow_marks

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

pytestmark = pytest.mark.django_db(transaction=True)


HEAD = Head(queue="default", priority=0, due_at=START)


@dataclass
class Time:
    """Elapsed time as a test sets it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def marks(clock: ManualClock) -> Marks:
    return slow_marks(clock)


@pytest.fixture
def store(clock: ManualClock, marks: Marks) -> OrmJobStore:
    return OrmJobStore("default", clock, marks=marks)


@pytest.fixture
def crons(clock: ManualClock) -> OrmCronStore:
    return OrmCronStore("default", clock)


class TestEveryGuaranteeWhileListingTakesLong(
    CancelContract,
    ClaimContract,
    ExpireContract,
    HoldContract,
    LimitContract,
    LookContract,
    RequeueContract,
    SettleContract,
    ShareContract,
    SweepContract,
):
    """What one store changes all its claims know at once, and none is made twice."""


class TestWhatOthersChange:
    """Another process stores jobs, of which this store learns by looking."""

    def test_claims_do_without_a_listing_for_a_while(self, store: OrmJobStore) -> None:
        stored = [enqueued(store).id for _ in range(6)]
        assert taken(store, 2) == stored[:2]
        with CaptureQueriesContext(connection) as asked:
            assert taken(store, 2) == stored[2:4]
        assert not listings(asked)
        with CaptureQueriesContext(connection) as asked:
            assert taken(store, 2) == stored[4:]
            taken(store, 1)
        assert listings(asked)

    def test_a_more_urgent_job_is_found_once_the_time_is_over(
        self, store: OrmJobStore, other: OrmJobStore, clock: ManualClock
    ) -> None:
        first = [enqueued(store).id for _ in range(4)]
        assert taken(store, 1) == first[:1]
        urgent = enqueued(other, priority=9).id
        assert taken(store, 1) == first[1:2]
        clock.advance(SECOND)
        assert taken(store, 1) == [urgent]

    def test_a_claim_with_less_than_it_asks_for_lists_anew(self, store: OrmJobStore, other: OrmJobStore) -> None:
        mine = [enqueued(store).id for _ in range(2)]
        assert taken(store, 1) == mine[:1]
        theirs = [enqueued(other, priority=priority).id for priority in (-9, 9)]
        assert sorted(taken(store, 3)) == sorted([*mine[1:], *theirs])

    def test_the_turn_by_age_lists_anew(self, store: OrmJobStore, other: OrmJobStore) -> None:
        mine = [enqueued(store).id for _ in range(3)]
        assert taken(store, 1) == mine[:1]
        older = enqueued(other, priority=-9).id
        Job.objects.filter(pk=older).update(next_run_at=START - SECOND)
        assert [claim.id for claim in store.claim(worker_id="w", limit=1, lease=LEASE, turn=7)] == [older]

    def test_a_pause_holds_at_once(self, store: OrmJobStore, other: OrmJobStore) -> None:
        for _ in range(3):
            enqueued(store)
        assert len(taken(store, 1)) == 1
        other.pause_queue("default")
        assert taken(store, 1) == []

    def test_what_this_process_commits_later_is_found_at_once(self, store: OrmJobStore, marks: Marks) -> None:
        mine = enqueued(store).id
        before = due_heads(connection, EVERY_QUEUE, store.now())
        with transaction.atomic():
            urgent = enqueued(store, priority=9).id
            marks.listed(EVERY_QUEUE, lambda: before)  # as another thread does, which cannot see it yet
            assert marks.kept(EVERY_QUEUE)
        assert taken(store, 1) == [urgent]
        assert taken(store, 1) == [mine]

    @pytest.fixture
    def other(self, clock: ManualClock) -> OrmJobStore:
        return OrmJobStore("default", clock)


class TestTheOnlyHead:
    """Where one head is due, whatever waits for its time, PostgreSQL lists it and takes from it by one statement."""

    @pytest.fixture
    def plain(self, clock: ManualClock) -> OrmJobStore:
        return OrmJobStore("default", clock)

    @pytest.mark.parametrize("turn", [0, 7], ids=["by priority", "by age"])
    @pytest.mark.parametrize(
        "queues", [EVERY_QUEUE, QueueFilter(include=("default", "b")), QueueFilter(exclude=("b",))]
    )
    def test_is_taken_from_at_once(self, plain: OrmJobStore, turn: int, queues: QueueFilter) -> None:
        due = [enqueued(plain).id for _ in range(3)]
        enqueued(plain, queue="c", due_at=START + SECOND)
        with CaptureQueriesContext(connection) as asked:
            claims = plain.claim(worker_id="w", limit=2, lease=LEASE, turn=turn, queues=queues)
        assert [claim.id for claim in claims] == due[:2]
        if connection.vendor == "postgresql":
            assert len(asked) == 1

    def test_of_several_heads_none_is_taken_from_before_all_are_known(self, plain: OrmJobStore) -> None:
        low, high = enqueued(plain).id, enqueued(plain, priority=1).id
        with CaptureQueriesContext(connection) as asked:
            assert taken(plain, 1) == [high]
        if connection.vendor == "postgresql":
            assert len(asked) == 2
        assert taken(plain, 1) == [low]

    def test_a_pattern_is_no_name(self, plain: OrmJobStore) -> None:
        mine = enqueued(plain, queue="mail.out").id
        claims = plain.claim(worker_id="w", limit=2, lease=LEASE, queues=QueueFilter(include=("mail*",)))
        assert [claim.id for claim in claims] == [mine]

    def test_a_queue_whose_pause_is_over_is_one_and_a_paused_one_is_none(
        self, plain: OrmJobStore, clock: ManualClock
    ) -> None:
        mine = enqueued(plain).id
        enqueued(plain, queue="b")
        plain.pause_queue("b")
        plain.pause_queue("default", until=START + SECOND)
        assert taken(plain, 2) == []
        clock.advance(SECOND)
        assert taken(plain, 2) == [mine]


class TestWhenAnAnswerIsKept:
    """Time is given: what a look at it says, one after the other."""

    def test_only_after_some_slow_listings_in_a_row_and_for_as_long_as_it_is_worth(self, time: Time) -> None:
        marks = Marks(time)
        for took in (2 * SLOW, SLOW / 2, *[2 * SLOW] * (PATIENCE - 1)):
            assert list_for(marks, time, took) == []
        assert list_for(marks, time, 2 * SLOW) == [HEAD]
        time.now += 2 * SLOW * WORTH - 0.001
        assert marks.kept(EVERY_QUEUE) == [HEAD]
        time.now += 0.002
        assert marks.kept(EVERY_QUEUE) == []

    def test_never_for_longer_than_a_second(self, time: Time) -> None:
        marks = Marks(time)
        for _ in range(PATIENCE):
            list_for(marks, time, 60.0)
        time.now += LONGEST - 0.001
        assert marks.kept(EVERY_QUEUE) == [HEAD]
        time.now += 0.002
        assert marks.kept(EVERY_QUEUE) == []

    def test_what_does_more_than_list_only_says_that_the_next_one_lists_alone(self, time: Time) -> None:
        marks = Marks(time)
        assert marks.are_needless
        for _ in range(2 * PATIENCE):
            assert marks.timed(lambda: take_for(time, 2 * SLOW), taken=lambda _: 0) == "answer"
            assert not marks.are_needless
            assert marks.kept(EVERY_QUEUE) == []
        list_for(marks, time, SLOW / 2)
        assert marks.are_needless
        marks.timed(lambda: take_for(time, SLOW / 2), taken=lambda _: 0)
        assert marks.are_needless

    def test_what_takes_many_jobs_may_take_longer(self, time: Time) -> None:
        marks = Marks(time)
        marks.timed(lambda: take_for(time, 2 * SLOW), taken=lambda _: CLAIM_LIMIT)
        assert marks.are_needless
        marks.timed(lambda: take_for(time, SLOW + CLAIM_LIMIT * TAKING), taken=lambda _: CLAIM_LIMIT)
        assert not marks.are_needless

    def test_for_the_same_queues_alone(self, time: Time) -> None:
        marks = Marks(time)
        for _ in range(PATIENCE):
            list_for(marks, time, 2 * SLOW)
        assert marks.kept(QueueFilter(include=("a",))) == []

    def test_not_where_something_has_changed_meanwhile(self, time: Time) -> None:
        marks = Marks(time)
        for _ in range(PATIENCE):
            list_for(marks, time, 2 * SLOW)
        assert list_for(marks, time, 2 * SLOW, meanwhile=marks.forget) == []
        assert list_for(marks, time, 2 * SLOW) == [HEAD]

    @pytest.fixture
    def time(self) -> Time:
        return Time()


def list_for(marks: Marks, time: Time, took: float, meanwhile: Callable[[], None] = lambda: None) -> list[Head]:
    """Let a listing take so long, and return what is kept of it."""

    def ask() -> list[Head]:
        time.now += took
        meanwhile()
        return [HEAD]

    assert marks.listed(EVERY_QUEUE, ask) == [HEAD]
    return marks.kept(EVERY_QUEUE)


def take_for(time: Time, took: float) -> str:
    time.now += took
    return "answer"


def taken(store: OrmJobStore, limit: int) -> list[UUID]:
    return [claim.id for claim in store.claim(worker_id="w", limit=limit, lease=LEASE)]


def listings(asked: CaptureQueriesContext) -> list[str]:
    return [
        query["sql"] for query in asked.captured_queries if "LEFT JOIN" in query["sql"] and "paused" in query["sql"]
    ]
