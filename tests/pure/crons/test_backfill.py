from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID

from django_helisched.crons.backfill import plan_backfill
from django_helisched.crons.cron import FireSnapshot
from tests.pure.crons.factories import NOON, cron, every

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def fire(due_at, last_due_at=None, count=1, outcome="missed"):
    return FireSnapshot(
        cron_id=UUID(int=1),
        due_at=due_at,
        last_due_at=due_at if last_due_at is None else last_due_at,
        count=count,
        outcome=outcome,
        job_id=None,
        lateness=timedelta(0),
        reason="why",
        decided_at=NOON,
    )


def left_of(plan):
    return [(part.due_at, part.last_due_at, part.count) for part in plan.remainders]


RUN = fire(NOON, NOON + 9 * HOUR, 10)


def test_a_run_is_taken_whole():
    plan = plan_backfill(cron(), [RUN], NOON, NOON + 9 * HOUR)
    assert plan.due == tuple(NOON + hour * HOUR for hour in range(10))
    assert (plan.replaced, plan.remainders, plan.left, plan.unknown) == ((NOON,), (), 0, 0)


def test_the_middle_of_a_run_leaves_two_parts():
    plan = plan_backfill(cron(), [RUN], NOON + 2 * HOUR, NOON + 4 * HOUR)
    assert plan.due == (NOON + 2 * HOUR, NOON + 3 * HOUR, NOON + 4 * HOUR)
    assert left_of(plan) == [(NOON, NOON + HOUR, 2), (NOON + 5 * HOUR, NOON + 9 * HOUR, 5)]
    assert {part.of for part in plan.remainders} == {RUN}


def test_each_end_of_a_run_leaves_the_rest():
    plan = plan_backfill(cron(), [RUN], NOON - HOUR, NOON)
    assert (plan.due, left_of(plan)) == ((NOON,), [(NOON + HOUR, NOON + 9 * HOUR, 9)])
    plan = plan_backfill(cron(), [RUN], NOON + 9 * HOUR, NOON + 99 * HOUR)
    assert (plan.due, left_of(plan)) == ((NOON + 9 * HOUR,), [(NOON, NOON + 8 * HOUR, 9)])


def test_between_two_occurrences_there_is_nothing_to_take():
    plan = plan_backfill(cron(), [RUN], NOON + MINUTE, NOON + 59 * MINUTE)
    assert (plan.due, plan.replaced, plan.remainders) == ((), (), ())


def test_the_cap_takes_the_oldest_and_tells_how_many_are_left():
    later = fire(NOON + 20 * HOUR, NOON + 22 * HOUR, 3)
    plan = plan_backfill(cron(), [RUN, later], NOON, NOON + 99 * HOUR, limit=4)
    assert plan.due == tuple(NOON + hour * HOUR for hour in range(4))
    assert (plan.replaced, plan.left) == ((NOON,), 9)
    assert left_of(plan) == [(NOON + 4 * HOUR, NOON + 9 * HOUR, 6)]


def test_only_what_was_missed_or_skipped_is_taken():
    fires = [
        fire(NOON, outcome="enqueued"),
        fire(NOON + HOUR, outcome="skipped_overlap"),
        fire(NOON + 2 * HOUR, outcome="caught_up"),
        fire(NOON + 3 * HOUR),
    ]
    plan = plan_backfill(cron(), fires, NOON, NOON + 9 * HOUR)
    assert plan.due == plan.replaced == (NOON + HOUR, NOON + 3 * HOUR)


def test_a_run_of_an_earlier_schedule_is_told_and_left():
    fires = [fire(NOON, NOON + 59 * MINUTE, 60), fire(NOON + 3 * HOUR, NOON + 5 * HOUR, 3)]
    plan = plan_backfill(cron(), fires, NOON, NOON + 9 * HOUR)
    assert (plan.due, plan.unknown) == ((NOON + 3 * HOUR, NOON + 4 * HOUR, NOON + 5 * HOUR), 60)
    same_count = plan_backfill(cron(), [fire(NOON, NOON + 2 * HOUR + MINUTE, 3)], NOON, NOON + 9 * HOUR)
    assert (same_count.due, same_count.unknown) == ((), 3)
    broken = plan_backfill(cron(spec='{"kind":"cron","expr":"@reboot"}'), [RUN], NOON, NOON + 9 * HOUR)
    assert (broken.due, broken.unknown) == ((), 10)


def test_of_one_or_two_occurrences_both_ends_are_known_whatever_the_schedule():
    pair = fire(NOON + 7 * MINUTE, NOON + 9 * MINUTE, 2)
    plan = plan_backfill(cron(), [pair], NOON, NOON + 8 * MINUTE)
    assert (plan.due, left_of(plan)) == ((NOON + 7 * MINUTE,), [(NOON + 9 * MINUTE, NOON + 9 * MINUTE, 1)])
    plan = plan_backfill(cron(), [pair], NOON + 8 * MINUTE, NOON + HOUR)
    assert (plan.due, left_of(plan)) == ((NOON + 9 * MINUTE,), [(NOON + 7 * MINUTE, NOON + 7 * MINUTE, 1)])
    assert plan_backfill(cron(), [pair], NOON, NOON + HOUR).due == (NOON + 7 * MINUTE, NOON + 9 * MINUTE)


def test_the_first_occurrence_of_a_run_need_not_be_one_of_the_schedule():
    promised = fire(NOON + 7 * MINUTE, NOON + 3 * HOUR, 4)
    plan = plan_backfill(cron(), [promised], NOON, NOON + 2 * HOUR)
    assert plan.due == (NOON + 7 * MINUTE, NOON + HOUR, NOON + 2 * HOUR)
    assert left_of(plan) == [(NOON + 3 * HOUR, NOON + 3 * HOUR, 1)]


def test_a_year_of_seconds_is_not_listed():
    seconds = 365 * 24 * 3600
    run = fire(NOON, NOON + timedelta(seconds=seconds - 1), seconds)
    row = cron(spec=every(seconds=1))
    begun = time.process_time()
    plan = plan_backfill(row, [run], NOON + HOUR, NOON + 99 * HOUR)
    assert time.process_time() - begun < 1
    assert (len(plan.due), plan.left) == (1000, 98 * 3600 + 1 - 1000)
    assert sum(part.count for part in plan.remainders) == seconds - 1000
