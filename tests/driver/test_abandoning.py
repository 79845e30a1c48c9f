"""Bodies that do not end though they were told to: their jobs end without them."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched import scheduler
from django_helisched.driver import ThreadSeats
from django_helisched.driver.events import What
from django_helisched.driver.held import HeldClaims
from django_helisched.jobs.job import State
from tests.app import jobs as bodies
from tests.driver.conftest import LEASE
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.driver import Driver
    from django_helisched.functions import JobFunction

GRACE = timedelta(seconds=0.05)
QUICK = timedelta(seconds=0.05)


@pytest.fixture
def two_seats(make_driver: Callable[..., Driver]) -> Driver:
    bodies.gates.update(g=threading.Event(), h=threading.Event())
    return make_driver(seats=ThreadSeats(2), threads=2, timeout_grace=GRACE)


def enqueued(jobs: Any, function: JobFunction[Any, Any], *args: Any, **columns: Any) -> Any:
    """Enqueue a job with a timeout, and give its row what no option sets."""
    row = jobs.get(function.enqueue(*args).id)
    jobs.rows.tables.put(replace(row, **{"timeout": QUICK, **columns}))
    return row


def settled(jobs: Any, job: Any) -> bool:
    return bool(jobs.attempts_of(job.id))


@pytest.mark.parametrize("body", [bodies.sit_at, bodies.swallow_all], ids=["in one call", "swallows"])
def test_the_job_of_a_body_that_does_not_stop_is_tried_again(two_seats: Driver, jobs, events, body):
    job = enqueued(jobs, body, "g")
    two_seats.tick()
    wait_for(lambda: settled(jobs, job))
    row = jobs.get(job.id)
    assert (row.state, row.attempts, row.lease_holder) == (State.PENDING, 1, None)
    (attempt,) = jobs.attempts_of(job.id)
    assert (attempt.outcome, attempt.error_class) == ("timeout", "django_helisched.OutOfTime")
    assert "still ran 0.05 s after its timeout, and was abandoned" in attempt.error
    assert "tests/app/jobs.py" in attempt.traceback.splitlines()[0]
    assert "gates[gate]" in attempt.traceback
    assert len(events.of(What.JOB_ABANDONED)) == len(events.of(What.JOB_RETRIED)) == 1


def test_the_last_time_it_fails_for_that_reason_and_calls_back(two_seats: Driver, jobs):
    job = enqueued(jobs, bodies.sit_at.using(on_complete=bodies.told, context="c"), "g", max_failures=1)
    two_seats.tick()
    wait_for(lambda: settled(jobs, job))
    row = jobs.get(job.id)
    assert (row.state, row.failure_reason) == (State.FAILED, "timeout")
    two_seats.tick()
    wait_for(lambda: ("c", "failed") in bodies.seen)


def test_at_most_once_stays_at_most_once(two_seats: Driver, jobs):
    job = enqueued(jobs, bodies.sit_once, "g", max_failures=1)
    two_seats.tick()
    wait_for(lambda: settled(jobs, job))
    row = jobs.get(job.id)
    assert (row.state, row.failure_reason) == (State.FAILED, "timeout")


def test_what_an_abandoned_body_returns_is_dropped_and_told(two_seats: Driver, jobs, events):
    job = enqueued(jobs, bodies.sit_at, "g")
    two_seats.tick()
    wait_for(lambda: settled(jobs, job))
    before = jobs.get(job.id)
    bodies.gates["g"].set()
    wait_for(lambda: events.of(What.JOB_LATE))
    assert jobs.get(job.id) == before
    assert len(jobs.attempts_of(job.id)) == 1


def test_an_abandoned_body_may_neither_report_nor_enqueue(two_seats: Driver, jobs, events):
    job = enqueued(jobs, bodies.sit_at, "g")
    two_seats.tick()
    wait_for(lambda: settled(jobs, job))
    # Let the exceptions come that the guard goes on raising: this body is to reach its end.
    bodies.gates["g"].set()
    wait_for(lambda: events.of(What.JOB_LATE))
    assert "allowed" not in bodies.seen
    assert jobs.progress_of(job.id) is None


def test_what_it_logged_until_then_is_kept(two_seats: Driver, jobs):
    job = enqueued(jobs, bodies.sit_at, "g")
    two_seats.tick()
    wait_for(lambda: settled(jobs, job))
    assert jobs.attempts_of(job.id)[0].log.endswith("WARNING tests.app.jobs: sits")


def test_the_seat_is_free_at_once_and_the_others_go_on(two_seats: Driver, jobs):
    stuck = enqueued(jobs, bodies.sit_at, "g")
    two_seats.tick()
    wait_for(lambda: settled(jobs, stuck))
    bodies.wait_at.enqueue("h")
    quick = [bodies.tell.enqueue(number) for number in range(5)]
    for _ in range(len(quick) + 1):
        two_seats.tick()
        wait_for(lambda: two_seats._seats.free() > 0)
    wait_for(lambda: all(jobs.get(job.id).state == State.SUCCESS for job in quick))
    assert not two_seats.is_stopping


def test_a_thread_that_was_left_ends_with_its_body_and_takes_no_other_job(two_seats: Driver, jobs, events):
    def seats() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith("helisched-seat")}

    before = seats()
    job = enqueued(jobs, bodies.sit_at, "g")
    two_seats.tick()
    wait_for(lambda: settled(jobs, job))
    bodies.gates["g"].set()
    wait_for(lambda: events.of(What.JOB_LATE))
    wait_for(lambda: len(seats() - before) == 2)
    assert two_seats._seats.free() == 2


def test_when_as_many_bodies_are_left_as_there_are_seats_the_process_is_to_be_started_anew(
    two_seats: Driver, jobs, events
):
    first = enqueued(jobs, bodies.sit_at, "g")
    two_seats.tick()
    wait_for(lambda: settled(jobs, first))
    assert not two_seats.is_worn_out
    second = enqueued(jobs, bodies.sit_at, "h")
    two_seats.tick()
    wait_for(lambda: two_seats.is_worn_out)
    assert two_seats.is_stopping
    two_seats.drain()
    assert two_seats.in_flight == 0
    assert settled(jobs, second)
    assert [event.text for event in events.of(What.DRIVER_WORN)] == [
        "2 abandoned bodies occupy threads: this process finishes what else it runs and leaves, to be started anew."
    ]


def test_a_body_that_has_ended_after_all_is_no_burden_any_more(two_seats: Driver, jobs, events):
    for number, gate in enumerate("gh", start=1):
        job = enqueued(jobs, bodies.sit_at, gate)
        two_seats.tick()
        wait_for(lambda: settled(jobs, job))  # noqa: B023
        bodies.gates[gate].set()
        wait_for(lambda: len(events.of(What.JOB_LATE)) == number)  # noqa: B023
    assert not two_seats.is_worn_out


def test_an_abandoned_job_that_was_asked_to_stop_ends_canceled(two_seats: Driver, jobs):
    job = enqueued(jobs, bodies.sit_at, "g", timeout=timedelta(seconds=0.3))
    two_seats.tick()
    wait_for(lambda: bodies.seen)
    scheduler.cancel(job.id)
    wait_for(lambda: settled(jobs, job))
    assert jobs.get(job.id).state == State.CANCELED
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["timeout"]


def test_an_abandoned_job_that_another_worker_has_is_left_alone(two_seats: Driver, jobs, events):
    job = enqueued(jobs, bodies.sit_at, "g", timeout=timedelta(seconds=0.3))
    two_seats.tick()
    wait_for(lambda: bodies.seen)
    scheduler.cancel(job.id, force=True)
    before = jobs.get(job.id)
    wait_for(lambda: events.of(What.JOB_LOST))
    assert jobs.get(job.id) == before
    assert [attempt.outcome for attempt in jobs.attempts_of(job.id)] == ["canceled"]


def test_its_lease_is_renewed_until_its_end_is_written_and_not_longer(two_seats: Driver, jobs, store):
    job = enqueued(jobs, bodies.sit_at, "g")
    store.fail("settle", RuntimeError("refused"), RuntimeError("refused"))
    two_seats.tick()
    wait_for(lambda: two_seats.in_flight == 0)
    assert jobs.get(job.id).state == State.IN_PROGRESS


def test_of_the_end_of_a_body_and_its_abandonment_one_wins(jobs):
    bodies.note.enqueue("a")
    (claim,) = jobs.claim(worker_id="w", limit=1, lease=LEASE)
    held = HeldClaims().add(claim)
    assert (held.conclude(), held.abandon(), held.conclude()) == (True, False, True)
    held.renew()
    assert (held.abandon(), held.conclude(), held.abandon()) == (True, False, False)
    assert held.control.ended
    assert held.must_stop


def test_they_never_both_win(jobs):
    """The end of a body and its abandonment, a thousand times in the same instant."""
    bodies.note.enqueue("a")
    (claim,) = jobs.claim(worker_id="w", limit=1, lease=LEASE)
    helds = [HeldClaims().add(claim) for _ in range(1000)]
    both, won = threading.Barrier(2), {"end": [False] * 1000, "abandonment": [False] * 1000}

    def race(who: str, act: Callable[[Any], bool]) -> None:
        both.wait()
        for number, held in enumerate(helds):
            won[who][number] = act(held)

    threads = [
        threading.Thread(target=race, args=("end", lambda held: held.conclude())),
        threading.Thread(target=race, args=("abandonment", lambda held: held.abandon())),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(end != left for end, left in zip(won["end"], won["abandonment"], strict=True))


def test_inline_a_body_is_told_and_goes_on(make_driver, jobs, events):
    bodies.gates["g"] = threading.Event()

    def observe(event: Any) -> None:
        events.append(event)
        if event.what is What.JOB_OVERTIME:
            bodies.gates["g"].set()

    driver = make_driver(timeout_grace=GRACE, observe=observe)
    job = enqueued(jobs, bodies.swallow_all, "g")
    driver.tick()
    # It returns, unless one more exception comes on its way to the end.
    assert jobs.get(job.id).state in {State.SUCCESS, State.PENDING}
    assert len(events.of(What.JOB_OVERTIME)) == 1
    assert events.of(What.JOB_ABANDONED) == []
