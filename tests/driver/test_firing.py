"""Due crons become jobs, each by itself."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, OperationalError

from django_helisched import cron_jobs, scheduler
from django_helisched.crons.reconcile import plan_reconcile
from django_helisched.driver import ThreadSeats
from django_helisched.driver.events import What
from django_helisched.exceptions import Busy
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State
from django_helisched.signals import cron_fired
from django_helisched.stores.base import JobFilter
from tests.app import jobs as bodies
from tests.driver.conftest import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.driver import Driver

HOUR = timedelta(hours=1)


@pytest.fixture
def declare(crons) -> Callable[..., Any]:
    """Store a cron that fires every hour, from an hour after the start on."""

    def declare(name: str = "hourly", fn: Any = bodies.note, args: Any = ("cron",), **options: Any) -> Any:
        registry = cron_jobs()
        registry.interval(name, HOUR, fn, list(args), **options)

        def plan(rows: Any, now: Any) -> Any:
            return plan_reconcile(
                rows,
                registry.entries(),
                source="code",
                space=options.get("space", ""),
                now=now,
                declared_by="test",
                booted_at=now,
                new_id=uuid7,
                tzdata_version="2026a",
                declared_elsewhere={row.key: now for row in rows},
            )

        crons.reconcile("code", options.get("space", ""), plan)
        (cron,) = crons.find(name, space=options.get("space", ""))
        return cron

    return declare


def cron_of(crons: Any, cron: CronSnapshot) -> Any:
    found = crons.get(cron.id)
    assert found is not None
    return found


def jobs_of(jobs: Any, cron: CronSnapshot) -> list[Any]:
    return list(reversed(jobs.list(JobFilter(cron_id=cron.id))))


def test_a_due_cron_becomes_a_job_that_runs_in_the_same_tick(driver: Driver, declare, clock, jobs, crons, events):
    cron = declare()
    assert driver.tick().fired == 0
    clock.advance(HOUR)
    tick = driver.tick()
    assert (tick.fired, tick.claimed) == (1, 1)
    (job,) = jobs_of(jobs, cron)
    assert (job.due_at, job.trigger, job.name, job.state) == (START + HOUR, "cron", "hourly", State.SUCCESS)
    assert job.parent_id is None
    row = cron_of(crons, cron)
    assert (row.next_run_at, row.fired, row.missed) == (START + 2 * HOUR, 1, 0)
    (event,) = events.of(What.CRON_FIRED)
    assert (event.name, event.fired, event.next_run_at) == ("hourly", 1, START + 2 * HOUR)
    assert events.of(What.JOB_STARTED)[0].late == timedelta(0)


def test_a_cron_fires_once_for_each_occurrence_whoever_ticks(make_driver, declare, clock, jobs):
    cron = declare()
    drivers = [make_driver() for _ in range(3)]
    for _ in range(5):
        clock.advance(HOUR)
        for driver in drivers:
            driver.tick()
    assert [job.due_at for job in jobs_of(jobs, cron)] == [START + HOUR * number for number in range(1, 6)]


def test_who_loses_the_race_makes_no_job_and_says_so_quietly(driver: Driver, declare, clock, crons, jobs, events):
    cron = declare()
    clock.advance(HOUR)
    planned = driver._firing._plan(cron)
    driver.tick()
    assert driver._firing._fire_alone(planned) is None
    assert len(jobs_of(jobs, cron)) == 1
    assert len(events.of(What.CRON_FIRED)) == 1
    assert len(events.of(What.CRON_RACED)) == 1


def test_after_an_outage_the_job_knows_what_was_missed(driver: Driver, declare, clock):
    declare(fn=bodies.show_context, args=())
    clock.advance(5 * HOUR)
    assert driver.tick().fired == 1
    assert bodies.seen == [(START + 5 * HOUR, 4, START + HOUR, 1)]


def test_fire_all_starts_the_oldest_first_and_only_it_knows_of_the_missed(make_driver, declare, clock, jobs, events):
    driver = make_driver(catchup_cap=3)
    declare(fn=bodies.show_context, args=(), catch_up="fire_all")
    clock.advance(5 * HOUR)
    assert driver.tick().fired == 3
    assert [mark[:3] for mark in bodies.seen] == [
        (START + 3 * HOUR, 2, START + HOUR),
        (START + 4 * HOUR, 0, None),
        (START + 5 * HOUR, 0, None),
    ]
    (missed,) = events.of(What.CRON_MISSED)
    assert missed.missed == 2


def test_a_broken_row_is_parked_alone(driver: Driver, declare, clock, crons, jobs, events):
    broken = declare("broken")
    good = [declare(f"good-{number}") for number in range(3)]
    crons._rows.tables.crons[broken.id] = replace(broken, spec='{"kind":"cron","expr":"61 2 * * *"}')
    clock.advance(HOUR)
    assert driver.tick().fired == 3
    assert all(len(jobs_of(jobs, cron)) == 1 for cron in good)
    row = cron_of(crons, broken)
    assert row.next_run_at is None
    assert "61" in row.last_error
    (event,) = events.of(What.CRON_PARKED)
    assert event.name == "broken"
    clock.advance(HOUR)
    assert driver.tick().fired == 3
    assert len(events.of(What.CRON_PARKED)) == 1


def test_a_cron_whose_firing_the_database_refuses_is_parked(driver: Driver, declare, clock, cron_store, crons):
    cron = declare()
    clock.advance(HOUR)
    cron_store.fail("fire", IntegrityError("no"))
    assert driver.tick().fired == 0
    assert "IntegrityError" in cron_of(crons, cron).last_error


def test_crons_that_are_due_together_are_fired_in_one_transaction(driver: Driver, declare, clock, cron_store, jobs):
    made = [declare(f"cron {number}") for number in range(5)]
    clock.advance(HOUR)
    cron_store.calls.clear()
    assert driver.tick().fired == 5
    assert [verb for verb in cron_store.calls if verb.startswith("fire")] == ["fire_together"]
    assert all(len(jobs_of(jobs, cron)) == 1 for cron in made)


def test_one_that_spoils_the_transaction_is_parked_and_the_others_fire(driver: Driver, declare, clock, cron_store):
    made = [declare(f"cron {number}") for number in range(3)]
    clock.advance(HOUR)
    cron_store.fail("fire_together", IntegrityError("no"))
    cron_store.fail("fire", IntegrityError("no"))
    assert driver.tick().fired == 2
    errors = [cron_of(cron_store, cron).last_error for cron in made]
    assert sorted(bool(error) for error in errors) == [False, False, True]


def test_an_outage_of_the_common_transaction_parks_nothing(driver: Driver, declare, clock, cron_store):
    made = [declare(f"cron {number}") for number in range(3)]
    clock.advance(HOUR)
    cron_store.fail("fire_together", OperationalError("gone"))
    with pytest.raises(OperationalError):
        driver.tick()
    assert driver.tick().fired == 3
    assert {cron_of(cron_store, cron).last_error for cron in made} == {""}


def test_an_outage_while_deciding_parks_nothing(driver: Driver, declare, clock, cron_store, crons):
    cron = declare(overlap="skip")
    clock.advance(HOUR)
    cron_store.fail("live_jobs", OperationalError("gone"))
    with pytest.raises(OperationalError):
        driver.tick()
    assert driver.tick().fired == 1
    assert cron_of(crons, cron).last_error == ""


def test_more_crons_than_one_look_takes_are_looked_for_again_at_once(driver: Driver, declare, clock):
    for number in range(101):
        declare(f"cron {number}")
    clock.advance(HOUR)
    assert driver.tick().fired == 100
    assert driver._look is not None
    assert driver._look.again
    assert driver.tick().fired == 1


def test_an_outage_parks_nothing(driver: Driver, declare, clock, cron_store, crons):
    cron = declare()
    clock.advance(HOUR)
    cron_store.fail("fire", OperationalError("gone"))
    with pytest.raises(OperationalError):
        driver.tick()
    assert driver.tick().fired == 1
    assert cron_of(crons, cron).last_error == ""


def test_a_cron_takes_what_its_function_declares_and_its_own_word_over_it(driver: Driver, declare, clock, jobs):
    plain = declare("plain", fn=bodies.send)
    special = declare("special", fn=bodies.send, queue="vip", priority=-3, max_failures=2)
    clock.advance(HOUR)
    driver.tick()
    (job,) = jobs_of(jobs, plain)
    assert (job.kind, job.queue, job.priority, job.max_failures) == ("action", "mail", 7, 9)
    (job,) = jobs_of(jobs, special)
    assert (job.queue, job.priority, job.max_failures) == ("vip", -3, 2)


def test_an_at_most_once_function_keeps_its_budget_of_one(driver: Driver, declare, clock, jobs):
    cron = declare(fn=bodies.once, max_failures=5)
    clock.advance(HOUR)
    driver.tick()
    (job,) = jobs_of(jobs, cron)
    assert (job.at_most_once, job.max_failures, job.state) == (True, 1, State.FAILED)


def test_a_cron_of_an_unknown_function_makes_a_job_that_waits(driver: Driver, declare, clock, jobs):
    cron = declare(fn="shop.jobs.elsewhere")
    clock.advance(HOUR)
    driver.tick()
    (job,) = jobs_of(jobs, cron)
    assert (job.state, job.hold, job.kind) == (State.PENDING, "unknown_function", "mutation")


def test_jitter_delays_the_job_and_not_the_occurrence(driver: Driver, declare, clock, jobs):
    cron = declare(jitter=timedelta(minutes=10))
    clock.advance(HOUR)
    driver.tick()
    (job,) = jobs_of(jobs, cron)
    assert job.due_at == START + HOUR
    assert START + HOUR <= job.next_run_at <= START + HOUR + timedelta(minutes=10)


def test_overlap_skip_makes_no_job_while_an_earlier_one_lives(driver: Driver, declare, clock, jobs, crons, events):
    cron = declare(fn=bodies.raise_this, args=("snooze",), overlap="skip")
    for _ in range(2):
        clock.advance(HOUR)
        driver.tick()
    assert len(jobs_of(jobs, cron)) == 1
    assert cron_of(crons, cron).missed == 1
    assert [event.missed for event in events.of(What.CRON_SKIPPED)] == [1]


def test_cancel_previous_cancels_what_is_left_of_the_occurrence_before(driver: Driver, declare, clock, jobs):
    cron = declare(fn=bodies.raise_this, args=("RetryLater",), max_failures=99, overlap="cancel_previous")
    for _ in range(2):
        clock.advance(HOUR)
        driver.tick()
    older, newer = jobs_of(jobs, cron)
    assert (older.state, newer.state) == (State.CANCELED, State.PENDING)


def test_cancel_previous_asks_a_running_job_to_stop_and_its_successor_waits_for_it(make_driver, declare, clock, jobs):
    bodies.gates["g"] = threading.Event()
    driver = make_driver(seats=ThreadSeats(4), lease=9 * HOUR)
    cron = declare(fn=bodies.wait_at, args=("g",), overlap="cancel_previous")
    clock.advance(HOUR)
    assert driver.tick().claimed == 1
    clock.advance(HOUR)
    tick = driver.tick()
    assert (tick.fired, tick.claimed) == (1, 0)
    older, newer = jobs_of(jobs, cron)
    assert (older.state, older.cancel_requested_at) == (State.IN_PROGRESS, START + 2 * HOUR)
    assert (newer.state, newer.hold) == (State.PENDING, "overlap")
    clock.advance(HOUR)
    assert driver.tick().claimed == 0
    older, newer, newest = jobs_of(jobs, cron)
    assert (older.state, newer.state, newest.hold) == (State.IN_PROGRESS, State.CANCELED, "overlap")
    bodies.gates["g"].set()
    driver.drain()
    assert make_driver().tick().claimed == 1
    assert [job.state for job in jobs_of(jobs, cron)] == [State.CANCELED, State.CANCELED, State.SUCCESS]


def test_a_job_run_by_hand_counts_for_the_overlap_of_its_cron(driver: Driver, declare, clock, jobs, crons):
    cron = declare(overlap="skip")
    scheduler.crons.run_now(cron.id)
    clock.advance(HOUR)
    assert driver.tick().fired == 0
    assert cron_of(crons, cron).missed == 1
    clock.advance(HOUR)
    assert driver.tick().fired == 1


def test_two_jobs_run_by_hand_run_one_after_the_other(make_driver, declare, jobs):
    bodies.gates["g"] = threading.Event()
    driver = make_driver(seats=ThreadSeats(4))
    cron = declare(fn=bodies.wait_at, args=("g",), overlap="cancel_previous")
    first, second = (scheduler.crons.run_now(cron.id) for _ in range(2))
    assert driver.tick().claimed == 1
    assert driver.tick().claimed == 0
    assert [job.id for job in jobs_of(jobs, cron) if job.state == State.IN_PROGRESS] == [first.id]
    bodies.gates["g"].set()
    driver.drain()
    assert make_driver().tick().claimed == 1
    assert jobs.get(second.id).state == State.SUCCESS


def test_a_cron_whose_earlier_job_is_in_use_is_fired_at_the_next_look(driver: Driver, declare, clock, cron_store):
    declare(overlap="cancel_previous")
    clock.advance(HOUR)
    cron_store.fail("fire", Busy("in use"))
    assert driver.tick().fired == 0
    assert driver.tick().fired == 1


def test_a_driver_without_crons_leaves_them_to_others(make_driver, declare, clock, cron_store):
    driver = make_driver(fire_crons=False)
    declare()
    clock.advance(HOUR)
    assert driver.tick().fired == 0
    assert cron_store.calls == []


def test_receivers_learn_what_was_fired_and_missed(driver: Driver, declare, clock):
    heard: list[Any] = []

    def hear(name: str, fired: int, missed: int, **_: Any) -> None:
        heard.append((name, fired, missed))

    cron_fired.connect(hear)
    try:
        declare()
        clock.advance(3 * HOUR)
        driver.tick()
    finally:
        cron_fired.disconnect(hear)
    assert heard == [("hourly", 1, 2)]
