"""Two enqueues with one idempotency key, in transactions that are open at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import Error, transaction

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Enqueued, State
from django_helisched.models import Job, JobArgs
from django_helisched.testing.contract.factories import all_jobs, enqueued, new_job, running, settled, state_of, success
from tests.app.models import Ledger
from tests.races.stage import has_one_writer, pause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_helisched.stores.orm import OrmJobStore
    from tests.races.stage import Stage

_space: list[str] = []


@pytest.fixture(autouse=True)
def another_space() -> Iterator[None]:
    """Give every test keys that no row ever had: InnoDB locks more than the row where a deleted one is not purged."""
    _space.append(uuid7().hex)
    yield
    _space.clear()


def keyed(key: str) -> dict[str, str]:
    return {"idempotency_key": key, "space": _space[0]}


def enqueueing(store: OrmJobStore, *keys: str, **fields: Any) -> Callable[[], list[Enqueued]]:
    jobs = [new_job(store, **keyed(key), **fields) for key in keys]
    return lambda: store.enqueue(jobs)


def ordering(store: OrmJobStore, marker: str) -> Callable[[], Enqueued]:
    """Return a caller's transaction: a row of its own before the enqueue, and one after it."""
    work = enqueueing(store, "k", args=[marker])

    def run() -> Enqueued:
        with transaction.atomic():
            Ledger.objects.create(marker=f"{marker} before")
            [made] = work()
            pause()
            Ledger.objects.create(marker=f"{marker} after")
            return made

    return run


def after_an_insert() -> Callable[[str], bool]:
    """Stop an actor before the statement that follows its first new job."""
    seen: list[str] = []

    def stop(sql: str) -> bool:
        is_next = bool(seen)
        if sql.startswith("INSERT INTO"):
            seen.append(sql)
        return is_next

    return stop


def markers() -> list[str]:
    return sorted(Ledger.objects.values_list("marker", flat=True))


def test_the_second_of_two_open_transactions_gets_the_job_of_the_first_and_stays_usable(stage: Stage, store):
    first = stage.enter(ordering(store, "a")).stands()
    second = stage.enter(ordering(store, "b")).waits()
    second.go_on()
    winner = first.finish()
    loser = second.result()
    assert (winner.created, loser.created, loser.job) == (True, False, winner.job)
    assert [job.id for job in all_jobs(store)] == [winner.job.id]
    assert store.args_of(winner.job.id)["args"] == ["a"]
    assert markers() == ["a after", "a before", "b after", "b before"]


def test_where_the_first_transaction_rolls_back_the_second_one_makes_the_job(stage: Stage, store):
    first = stage.enter(ordering(store, "a")).stands()
    second = stage.enter(ordering(store, "b")).waits()
    second.go_on()
    first.break_off()
    made = second.result()
    assert made.created
    assert [job.id for job in all_jobs(store)] == [made.job.id]
    assert store.args_of(made.job.id)["args"] == ["b"]
    assert markers() == ["b after", "b before"]


def test_an_enqueue_that_lost_and_is_undone_leaves_the_winner_alone(stage: Stage, store):
    first = stage.enter(ordering(store, "a")).stands()
    second = stage.enter(ordering(store, "b")).waits()
    winner = first.finish()
    second.stands().break_off()
    assert [job.id for job in all_jobs(store)] == [winner.job.id]
    assert markers() == ["a after", "a before"]


def test_two_enqueues_of_one_key_at_once_make_one_job(stage: Stage, store):
    actors = [stage.about_to_write(enqueueing(store, "k", args=[name])) for name in "ab"]
    for actor in actors:
        actor.go_on()
    (a,), (b,) = (actor.result() for actor in actors)
    assert sorted([a.created, b.created]) == [False, True]
    assert a.job.id == b.job.id
    assert JobArgs.objects.count() == 1


def test_three_enqueues_of_one_key_whose_first_rolls_back_make_one_job(stage: Stage, store):
    first = stage.holds_open(enqueueing(store, "k"))
    others = [stage.enter(enqueueing(store, "k")).waits() for _ in range(2)]
    first.break_off()
    (a,), (b,) = (actor.result() for actor in others)
    assert sorted([a.created, b.created]) == [False, True]
    assert [job.id for job in all_jobs(store)] == [a.job.id] == [b.job.id]


def test_many_keys_in_opposite_orders_are_all_enqueued_once(stage: Stage, store):
    """A deadlock, where rows are locked one by one: the loser does all of it once more."""
    first = stage.enter(enqueueing(store, "k", "l"), after_an_insert()).stands()
    second = stage.enter(enqueueing(store, "l", "k"), after_an_insert())
    if has_one_writer():
        second.waits()
    else:
        second.stands()
        second.go_on()
        second.waits()
    first.go_on()
    second.go_on()
    made = [*first.result(), *second.result()]
    assert sorted(one.created for one in made) == [False, False, True, True]
    assert Job.objects.count() == 2
    assert made[0].job.id == made[3].job.id
    assert made[1].job.id == made[2].job.id


def test_a_deadlock_in_a_callers_own_transaction_is_the_callers(stage: Stage, store):
    def opposite(one: str, other: str) -> Callable[[], list[Enqueued]]:
        first, second = enqueueing(store, one), enqueueing(store, other)

        def run() -> list[Enqueued]:
            with transaction.atomic():
                made = first()
                pause()
                return made + second()

        return run

    first = stage.enter(opposite("k", "l")).stands()
    second = stage.enter(opposite("l", "k"))
    if has_one_writer():
        second.waits()
        second.go_on()
        assert [one.created for one in first.finish()] == [True, True]
        assert [one.created for one in second.result()] == [False, False]
        return
    second.stands()
    second.go_on()
    second.waits()
    first.go_on()
    ended, refused = [], []
    for actor in (first, second):
        try:
            ended.append(actor.result())
        except Error as error:
            refused.append(error)
    assert [[one.created for one in made] for made in ended] == [[True, True]]
    assert [store.is_transient(error) for error in refused] == [True]
    assert Job.objects.count() == 2


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
def test_a_requeue_waits_to_learn_whether_its_freed_key_is_taken(stage: Stage, store, commits):
    claim = running(store, **keyed("k"), unique_until="terminal")
    settled(store, claim, success())
    rival = stage.holds_open(lambda: enqueued(store, **keyed("k")))
    requeue = stage.enter(lambda: store.requeue(claim.id)).waits()
    if commits:
        rival.finish()
    else:
        rival.break_off()
    assert requeue.result() is not commits
    assert state_of(store, claim.id) == (State.SUCCESS if commits else State.PENDING)


def test_an_enqueue_waits_to_learn_whether_its_key_is_freed(stage: Stage, store):
    claim = running(store, **keyed("k"), unique_until="terminal")
    settle = stage.holds_open(lambda: settled(store, claim, success()))
    enqueue = stage.enter(enqueueing(store, "k")).waits()
    settle.finish()
    [made] = enqueue.result()
    assert made.created
    assert made.job.id != claim.id
