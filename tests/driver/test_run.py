"""The loop: it wakes, it endures, it stops."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from django_helisched import scheduler
from django_helisched.driver import ThreadSeats
from django_helisched.driver.events import What
from django_helisched.driver.once import Tally, run_once
from django_helisched.driver.pace import LINGER, Look, Pace
from django_helisched.exceptions import NotMigrated
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import NewJob, State
from tests.app import jobs as bodies
from tests.driver.conftest import START
from tests.driver.test_heartbeat import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_helisched.driver import Driver

LONG = timedelta(seconds=30)  # a poll that no test waits for


@contextmanager
def running(driver: Driver) -> Iterator[threading.Thread]:
    """Run the loop in a thread until the block ends."""
    thread = threading.Thread(target=driver.run)
    thread.start()
    try:
        yield thread
    finally:
        for gate in bodies.gates.values():
            gate.set()
        if thread.is_alive():
            driver.stop()
        thread.join(20)
        assert not thread.is_alive()


def succeeded(driver: Driver, job: Any) -> bool:
    row = driver.jobs.get(job.id)
    return row is not None and row.state == State.SUCCESS


@pytest.fixture
def patient(make_driver):
    """Give a driver with two threads that never looks by itself within a test."""
    return make_driver(seats=ThreadSeats(2), poll_min=LONG, poll_max=LONG, fire_crons=False)


def test_a_commit_of_this_process_wakes_the_loop(patient: Driver, events):
    with running(patient):
        wait_for(lambda: patient._look is not None)
        job = bodies.note.enqueue("a")
        wait_for(lambda: succeeded(patient, job))


def test_a_hurry_tells_what_runs_of_its_cancel_at_once(patient: Driver, jobs):
    with running(patient):
        wait_for(lambda: patient._look is not None)
        job = bodies.wait_async.enqueue("a")
        wait_for(lambda: "a" in bodies.seen)
        scheduler.cancel(job)
        patient.hurry()
        wait_for(lambda: jobs.get(job.id).state == State.CANCELED)


def test_what_is_due_next_is_known_while_what_was_due_runs(patient: Driver):
    bodies.gates["g"] = threading.Event()
    bodies.wait_at.enqueue("g")
    later = bodies.note.run_after(5, "later")
    patient.tick()
    assert patient._look is not None
    assert later.due_at in patient._look.due


def test_a_finished_seat_claims_again(patient: Driver, jobs):
    for mark in range(20):
        bodies.note.enqueue(mark)
    with running(patient):
        wait_for(lambda: len(bodies.seen) == 20)


def test_the_loop_goes_on_through_an_outage_and_says_so_once(patient: Driver, store, events):
    with running(patient):
        wait_for(lambda: patient._look is not None)
        store.fail("next_due_at", OperationalError("gone"), OperationalError("still gone"))
        job = bodies.note.enqueue("a")
        wait_for(lambda: succeeded(patient, job))
    assert len(events.of(What.DATABASE_LOST)) == 1
    assert len(events.of(What.DATABASE_BACK)) == 1
    assert store.calls.count("next_due_at") < 20


def test_a_bug_in_a_pass_does_not_end_the_loop(patient: Driver, store, caplog):
    with running(patient):
        wait_for(lambda: patient._look is not None)
        store.fail("next_due_at", RuntimeError("a bug"))
        job = bodies.note.enqueue("a")
        wait_for(lambda: succeeded(patient, job))
    assert "a bug" in caplog.text


def test_a_loop_that_starts_without_a_database_waits_for_it(patient: Driver, store):
    store.fail("report_worker", OperationalError("refused"))
    job = bodies.note.enqueue("a")
    with running(patient):
        wait_for(lambda: succeeded(patient, job))


def test_what_a_person_must_mend_ends_the_start(patient: Driver, store, events):
    store.fail("report_worker", NotMigrated("run migrate"))
    with pytest.raises(NotMigrated):
        patient.run()
    assert "driver.stopped" not in events.whats()


def test_stop_lets_what_runs_finish_and_takes_nothing_new(patient: Driver, jobs, events):
    bodies.gates["g"] = threading.Event()
    job = bodies.wait_at.enqueue("g")
    with running(patient) as thread:
        wait_for(lambda: bodies.seen)
        patient.stop()
        wait_for(lambda: "driver.draining" in events.whats())
        other = bodies.note.enqueue("other")
        assert thread.is_alive()
        bodies.gates["g"].set()
        thread.join(20)
        assert not thread.is_alive()
    assert jobs.get(job.id).state == State.SUCCESS
    assert jobs.get(other.id).state == State.PENDING
    assert not patient.is_cut_short
    (report,) = jobs.rows.tables.workers.values()
    assert report[0].state == "stopped"


def test_heartbeats_go_on_while_a_loop_drains(make_driver, store):
    driver = make_driver(seats=ThreadSeats(1), lease=timedelta(seconds=0.06), poll_max=LONG)
    bodies.gates["g"] = threading.Event()
    bodies.wait_at.enqueue("g")
    with running(driver):
        wait_for(lambda: bodies.seen)
        driver.stop()
        before = store.calls.count("heartbeat")
        wait_for(lambda: store.calls.count("heartbeat") > before + 2)


def test_a_second_stop_gives_back_what_has_not_begun_and_ends_at_once(patient: Driver, jobs, events):
    bodies.gates["g"] = threading.Event()
    for _ in range(2):
        bodies.wait_at.enqueue("g")
    waiting = bodies.note.enqueue("waiting")
    with running(patient) as thread:
        wait_for(lambda: len(bodies.seen) == 2)
        (claim,) = jobs.claim(worker_id="worker-0", limit=1, lease=LONG)
        patient._seats.start(patient._held.add(claim))
        patient.stop()
        patient.stop()
        thread.join(20)
        assert not thread.is_alive()
        assert patient.is_cut_short
        assert patient.in_flight == 2
    row = jobs.get(waiting.id)
    assert (row.state, row.attempt_count) == (State.PENDING, 0)
    assert "job.released" in events.whats()


def test_a_first_stop_is_never_taken_for_a_second_one(driver: Driver):
    driver.drain()
    driver.stop()
    assert not driver.is_cut_short
    driver.stop()
    assert driver.is_cut_short


def test_a_loop_stops_by_itself_after_max_tasks(make_driver, jobs):
    driver = make_driver(seats=ThreadSeats(2), max_tasks=3, poll_max=LONG)
    made = [bodies.note.enqueue(mark) for mark in range(5)]
    driver.run()
    assert [jobs.get(job.id).state for job in made].count(State.SUCCESS) == 3


def test_once_runs_what_is_due_and_leaves_what_comes_of_it(make_driver, jobs):
    tally = Tally()
    driver = make_driver(seats=ThreadSeats(2), observe=tally)
    for mark in range(9):
        bodies.note.enqueue(mark)
    later = bodies.note.run_after(60, "later")
    failing = bodies.fail_until.enqueue(9)
    run_once(driver)
    assert sorted(bodies.seen) == list(range(9))
    assert jobs.get(later.id).state == State.PENDING
    assert jobs.get(failing.id).attempts == 1
    summary = tally.summary()
    assert (summary["started"], summary["succeeded"], summary["retried"], summary["failed"]) == (10, 9, 1, 0)


def test_once_ends_although_jobs_make_jobs(make_driver, clock):
    driver = make_driver(seats=ThreadSeats(1), observe=lambda event: clock.advance(0.001))
    bodies.enqueue_itself.enqueue()
    run_once(driver)


def test_waits_grow_while_nothing_happens_and_end_at_what_is_known():
    pace = Pace(timedelta(seconds=0.1), timedelta(seconds=1), timedelta(seconds=9))
    quiet = Look(at=START)
    assert [pace.seconds_after(quiet, START) for _ in range(5)] == [0.2, 0.4, 0.8, 1, 1]
    assert pace.seconds_after(Look(at=START, busy=True), START) == 0.1
    assert pace.seconds_after(Look(at=START, again=True), START) == 0
    coming = Look(at=START, due=(None, START + timedelta(seconds=0.05)))
    assert pace.seconds_after(coming, START + timedelta(seconds=0.02)) == pytest.approx(0.03)
    assert pace.seconds_after(coming, START + timedelta(seconds=9)) == 0


def test_where_others_tell_of_news_only_what_is_known_and_the_net_end_a_wait():
    pace = Pace(timedelta(seconds=0.1), timedelta(seconds=1), timedelta(seconds=9))
    pace.is_told = True
    assert pace.seconds_after(Look(at=START), START) == 9
    assert pace.seconds_after(Look(at=START, busy=True, news=True), START) == 0.1
    coming = Look(at=START, due=(None, START + timedelta(seconds=4)))
    assert pace.seconds_after(coming, START) == 4
    pace.is_told = False
    assert pace.seconds_after(Look(at=START), START) < 1


def test_where_others_tell_of_news_nobody_tells_when_a_lock_is_let_go():
    pace = Pace(timedelta(seconds=0.1), timedelta(seconds=1), timedelta(seconds=9))
    pace.is_told = True
    held = Look(at=START, due=(START - timedelta(seconds=1),))
    assert [pace.seconds_after(held, START) for _ in range(5)] == [0.2, 0.4, 0.8, 1, 1]


def test_after_news_it_looks_often_for_a_while_since_more_may_follow():
    pace = Pace(timedelta(seconds=0.1), timedelta(seconds=1), timedelta(seconds=9))
    pace.seconds_after(Look(at=START, busy=True, news=True), START)
    soon, later = START + LINGER / 2, START + LINGER
    assert [pace.seconds_after(Look(at=soon), soon) for _ in range(3)] == [0.1, 0.1, 0.1]
    assert [pace.seconds_after(Look(at=later), later) for _ in range(2)] == [0.2, 0.4]


def test_what_was_due_and_could_not_be_taken_is_no_reason_to_spin():
    pace = Pace(timedelta(seconds=0.1), timedelta(seconds=1), timedelta(seconds=9))
    stuck = Look(at=START, due=(START - timedelta(seconds=5),))
    assert pace.seconds_after(stuck, START) == 0.2


def looked(driver: Driver) -> None:
    """Return once the driver waits, and knows that there is nothing."""
    wait_for(lambda: driver._look is not None and not driver._claiming.is_hungry)


def stored(jobs: Any) -> NewJob:
    """Return a job that is due, and of which nobody was told."""
    now = jobs.now()
    path = "tests.app.jobs.note"
    new = NewJob(id=uuid7(), fn_path=path, args=["a"], created_at=now, due_at=now, next_run_at=now)
    jobs.enqueue([new])
    return new


def test_another_thread_claims_for_a_loop_that_waits(patient: Driver, jobs, store):
    with running(patient):
        looked(patient)
        job = stored(jobs)
        store.calls.clear()
        assert patient.claim()
        assert store.calls[0] == "claim"
        wait_for(lambda: succeeded(patient, job))
        # What else a pass asks is left to the loop.
        wait_for(lambda: "admit" in store.calls)


def test_nobody_claims_while_a_pass_is_on_its_way_or_before_the_first_one(patient: Driver, store):
    assert not patient.claim()
    with running(patient):
        looked(patient)
        with patient._one_pass:
            answers: list[bool] = []
            other = threading.Thread(target=lambda: answers.append(patient.claim()))
            other.start()
            other.join(20)
        assert answers == [False]
        assert patient.claim()


def test_no_other_thread_claims_where_seats_are_full_or_belong_to_the_caller(make_driver, patient: Driver):
    inline = make_driver()
    inline.tick()
    assert not inline.claim()
    with running(patient):
        looked(patient)
        bodies.gates["g"] = threading.Event()
        for _ in range(2):
            bodies.wait_at.enqueue("g")
        wait_for(lambda: len(bodies.seen) == 2)
        wait_for(lambda: patient._claiming.is_hungry)
        assert not patient.claim()


def test_a_loop_that_stops_waits_for_whoever_claims_for_it(make_driver, jobs, monkeypatch):
    entered, gate = threading.Event(), threading.Event()

    def slowly(**given: Any) -> Any:
        entered.set()
        gate.wait(20)
        return type(jobs).claim(jobs, **given)

    driver = make_driver(seats=ThreadSeats(2), poll_min=LONG, poll_max=LONG, fire_crons=False)
    with running(driver) as thread:
        looked(driver)
        job = stored(jobs)
        monkeypatch.setattr(jobs, "claim", slowly)
        other = threading.Thread(target=driver.claim)
        other.start()
        assert entered.wait(20)
        driver.stop()
        thread.join(0.1)
        assert thread.is_alive()
        assert not driver.claim()
        gate.set()
        other.join(20)
        thread.join(20)
        assert not thread.is_alive()
    assert jobs.get(job.id).state == State.SUCCESS


def test_the_last_task_may_be_claimed_by_another_thread(make_driver, jobs):
    driver = make_driver(seats=ThreadSeats(2), max_tasks=1, poll_min=LONG, poll_max=LONG, fire_crons=False)
    with running(driver) as thread:
        looked(driver)
        job = stored(jobs)
        assert driver.claim()
        thread.join(20)
        assert not thread.is_alive()
    assert jobs.get(job.id).state == State.SUCCESS
