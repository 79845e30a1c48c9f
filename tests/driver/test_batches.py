"""Batches as a caller and a driver know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from django_helisched import BatchClosed, scheduler
from django_helisched.driver import InlineSeats
from django_helisched.exceptions import InvalidArguments, InvalidOption, UnknownFunction
from django_helisched.stores.base import JobFilter
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from django_helisched.driver import Driver
    from django_helisched.stores.memory import MemoryJobStore


def run_all(driver: Driver) -> None:
    while driver.tick().claimed:
        pass


def test_the_callback_comes_once_after_the_last_job_with_counts(driver: Driver, jobs: MemoryJobStore):
    with scheduler.batch("import", on_complete=bodies.batch_done, context={"file": 7}, space="acme") as batch:
        bodies.note.enqueue(1)
        bodies.once.enqueue("fails")
        outside = bodies.note.using(batch=None).enqueue("outside")
        [many] = scheduler.enqueue_many([(bodies.note, [2])])
    after = bodies.note.enqueue("after")
    assert [job.batch_id for job in (outside, many, after)] == [None, batch.id, None]
    run_all(driver)
    counts = {"success": 2, "failed": 1, "canceled": 0}
    assert bodies.seen[-1] == (str(batch.id), {"file": 7}, counts)
    assert sum(isinstance(mark, tuple) for mark in bodies.seen) == 1
    assert scheduler.batch_counts(batch) == {"open": 0, **counts}
    [callback] = [job for job in jobs.list(JobFilter()) if job.trigger == "on_complete"]
    assert (callback.space, callback.batch_id) == ("acme", None)


def test_an_empty_batch_is_complete_at_once(driver: Driver):
    with scheduler.batch(on_complete=bodies.batch_done) as batch:
        pass
    assert driver.tick().claimed == 1
    assert bodies.seen == [(str(batch.id), None, {"success": 0, "failed": 0, "canceled": 0})]


def test_a_block_that_raises_leaves_nothing(jobs: MemoryJobStore):
    made = []

    def fill_and_fail() -> None:
        with scheduler.batch(on_complete=bodies.batch_done) as batch:
            made.append(batch)
            bodies.note.enqueue(1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fill_and_fail()
    assert jobs.list(JobFilter()) == []
    assert scheduler.batch_counts(made[0]) is None
    assert bodies.note.enqueue(2).batch_id is None


def test_a_batch_grows_from_inside_while_it_is_open(make_driver, jobs: MemoryJobStore):
    driver = make_driver(seats=InlineSeats(1))
    with scheduler.batch(on_complete=bodies.batch_done) as batch:
        bodies.grow.enqueue(3)
    run_all(driver)
    assert bodies.seen == [3, 2, 1, 0, (str(batch.id), None, {"success": 4, "failed": 0, "canceled": 0})]


def test_a_batch_that_was_made_by_hand_takes_jobs_until_it_is_closed(driver: Driver):
    batch = scheduler.create_batch(on_complete=bodies.batch_done)
    bodies.note.using(batch=batch).enqueue(1)
    scheduler.enqueue(bodies.note, [2], batch=batch.id)
    scheduler.enqueue_many([(bodies.note, [3]), (bodies.note, [4], {"batch": None})], batch=str(batch.id))
    run_all(driver)
    assert scheduler.batch_counts(batch) == {"open": 0, "success": 3, "failed": 0, "canceled": 0}
    assert scheduler.close_batch(batch)
    assert not scheduler.close_batch(batch)
    run_all(driver)
    assert bodies.seen == [1, 2, 3, 4, (str(batch.id), None, {"success": 3, "failed": 0, "canceled": 0})]
    with pytest.raises(BatchClosed, match="is complete"):
        bodies.note.using(batch=batch).enqueue(5)


def test_the_body_of_a_job_stands_outside_the_block_that_runs_it(driver: Driver):
    with scheduler.batch() as batch:
        bodies.enqueue_note.using(batch=None).enqueue("child")
        run_all(driver)
        inside = bodies.note.enqueue("inside")
    assert inside.batch_id == batch.id
    assert scheduler.batch_counts(batch) == {"open": 1, "success": 0, "failed": 0, "canceled": 0}


def test_a_callback_without_a_batch_to_tell_of(driver: Driver):
    with scheduler.batch():
        bodies.note.enqueue(1)
    run_all(driver)
    assert bodies.seen == [1]


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"on_complete": "shop.nobody"}, UnknownFunction, "shop.nobody"),
        ({"on_complete": bodies.note}, InvalidArguments, "note"),
        ({"context": {1, 2}}, InvalidArguments, "cannot be stored as JSON"),
        ({"name": "x" * 201}, InvalidOption, "at most 200"),
        ({"space": " a"}, InvalidOption, "space"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_stored(given: dict[str, Any], error: Any, sentence: str):
    with pytest.raises(error, match=sentence), scheduler.batch(**given):
        pytest.fail("the block must not begin")


def test_what_is_no_batch_is_refused():
    with pytest.raises(InvalidOption, match="neither a batch nor a batch's id"):
        bodies.note.using(batch="seven").enqueue(1)
    with pytest.raises(InvalidOption, match="neither a batch nor a batch's id"):
        scheduler.close_batch("seven")
