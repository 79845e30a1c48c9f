from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_helisched.crons.catch_up import FiringPlan, jitter_of, plan_firing
from django_helisched.crons.cron import CatchUp, FireOutcome, Overlap
from django_helisched.crons.occurrences import compute_next_run, count_occurrences
from django_helisched.crons.spec import InvalidSchedule
from tests.pure.crons.factories import DAILY, EVERY_MINUTE, HOURLY, NOON, cron, every

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)


def plan(row, now, *, cap=1000, grace=MINUTE, live=0) -> FiringPlan:
    return plan_firing(row, now, catchup_cap=cap, misfire_grace=grace, live_jobs=live)


def test_an_occurrence_on_time_becomes_a_job_and_nothing_is_missed():
    row = cron(next_run_at=NOON)
    planned = plan(row, NOON + 2 * SECOND)
    (fire,) = planned.fires
    assert (fire.due_at, fire.outcome, fire.lateness) == (NOON, FireOutcome.ENQUEUED, 2 * SECOND)
    assert (planned.missed, planned.missed_runs, planned.first_missed_at) == (0, (), None)
    assert planned.next_run_at == NOON + HOUR


def test_a_cron_falls_due_at_its_very_instant():
    assert len(plan(cron(next_run_at=NOON), NOON).fires) == 1
    assert plan(cron(next_run_at=NOON), NOON - MICROSECOND) == FiringPlan(next_run_at=NOON)


def test_a_cron_without_a_due_time_stays_without():
    assert plan(cron(next_run_at=None), NOON) == FiringPlan()


def test_fire_once_lets_the_latest_stand_for_ten_and_counts_the_nine():
    planned = plan(cron(next_run_at=NOON), NOON + 9 * HOUR + 5 * MINUTE)
    (fire,) = planned.fires
    assert (fire.due_at, fire.outcome) == (NOON + 9 * HOUR, FireOutcome.CAUGHT_UP)
    (run,) = planned.missed_runs
    assert (run.due_at, run.last_due_at, run.count, run.outcome) == (NOON, NOON + 8 * HOUR, 9, FireOutcome.MISSED)
    assert (planned.missed, planned.first_missed_at, planned.next_run_at) == (9, NOON, NOON + 10 * HOUR)


def test_skip_fires_none_of_a_backlog_and_counts_all():
    planned = plan(cron(next_run_at=NOON, catch_up="skip"), NOON + 9 * HOUR + 5 * MINUTE)
    (run,) = planned.missed_runs
    assert planned.fires == ()
    assert (run.due_at, run.last_due_at, run.count) == (NOON, NOON + 9 * HOUR, 10)
    assert planned.next_run_at == NOON + 10 * HOUR


@pytest.mark.parametrize(("late", "fires"), [(0 * SECOND, 1), (MINUTE, 1), (MINUTE + MICROSECOND, 0)])
def test_skip_fires_the_latest_within_the_grace(late, fires):
    planned = plan(cron(next_run_at=NOON, catch_up=CatchUp.SKIP), NOON + 2 * HOUR + late)
    assert (len(planned.fires), planned.missed) == (fires, 3 - fires)


def test_skip_does_not_starve_when_the_loop_is_slower_than_the_cron():
    row, now, fired = cron(spec=every(seconds=1), next_run_at=NOON, catch_up=CatchUp.SKIP), NOON, 0
    for _ in range(20):
        now += 1.5 * SECOND
        planned = plan(row, now)
        fired += len(planned.fires)
        row = replace(row, next_run_at=planned.next_run_at)
    assert fired == 20


def test_fire_all_makes_up_for_every_occurrence_oldest_first():
    planned = plan(cron(next_run_at=NOON, catch_up=CatchUp.FIRE_ALL), NOON + 3 * HOUR)
    assert [fire.due_at for fire in planned.fires] == [NOON + n * HOUR for n in range(4)]
    assert [fire.outcome for fire in planned.fires] == [FireOutcome.CAUGHT_UP] * 3 + [FireOutcome.ENQUEUED]
    assert planned.missed == 0


def test_fire_all_keeps_the_newest_up_to_the_cap_and_moves_past_the_whole_backlog():
    row = cron(spec=every(seconds=1), next_run_at=NOON + SECOND, catch_up=CatchUp.FIRE_ALL)
    planned = plan(row, NOON + 2 * HOUR)
    assert len(planned.fires) == 1000
    assert planned.fires[-1].due_at == NOON + 2 * HOUR
    assert planned.missed == 6200
    assert planned.missed_runs[0].last_due_at + SECOND == planned.fires[0].due_at
    again = plan(replace(row, next_run_at=planned.next_run_at), NOON + 2 * HOUR + SECOND)
    assert (len(again.fires), again.missed) == (1, 0)


@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize("spec", [every(seconds=1), '{"kind":"cron","expr":"* * * * * *"}'])
def test_a_year_of_seconds_is_counted_and_keeps_its_phase(catch_up, spec):
    row = cron(spec=spec, tz="Europe/Paris", next_run_at=NOON, catch_up=catch_up)
    planned = plan(row, NOON + timedelta(days=365) + 0.4 * SECOND)
    assert len(planned.fires) + planned.missed == 365 * 86400 + 1
    assert planned.next_run_at == NOON + timedelta(days=365) + SECOND


def test_an_interval_keeps_its_phase_over_an_outage():
    row = cron(spec=every(minutes=1), anchor=NOON, next_run_at=NOON + MINUTE)
    assert plan(row, NOON + 150 * SECOND).next_run_at == NOON + 180 * SECOND


@pytest.mark.parametrize("catch_up", CatchUp)
def test_overlap_skip_refuses_while_an_earlier_job_lives(catch_up):
    planned = plan(cron(next_run_at=NOON, catch_up=catch_up, overlap=Overlap.SKIP), NOON + 2 * HOUR, live=1)
    (run,) = planned.missed_runs
    assert planned.fires == ()
    assert (run.outcome, run.count, run.due_at, run.last_due_at) == (
        FireOutcome.SKIPPED_OVERLAP,
        3,
        NOON,
        NOON + 2 * HOUR,
    )
    assert run.reason
    assert planned.next_run_at == NOON + 3 * HOUR


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.CANCEL_PREVIOUS])
def test_jobs_that_would_wait_for_one_another_are_not_piled_up_by_fire_all(overlap):
    planned = plan(cron(next_run_at=NOON, catch_up="fire_all", overlap=overlap), NOON + 2 * HOUR)
    assert [fire.due_at for fire in planned.fires] == [NOON + 2 * HOUR]
    assert planned.missed == 2


@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.CANCEL_PREVIOUS])
def test_a_living_job_holds_back_nothing_but_overlap_skip(overlap):
    assert len(plan(cron(next_run_at=NOON, overlap=overlap), NOON, live=3).fires) == 1


def test_the_last_occurrence_is_that_at_the_end_and_then_none_is_due():
    row = cron(next_run_at=NOON, end=NOON + 2 * HOUR, catch_up=CatchUp.FIRE_ALL)
    planned = plan(row, NOON + 9 * HOUR)
    assert [fire.due_at for fire in planned.fires] == [NOON, NOON + HOUR, NOON + 2 * HOUR]
    assert (planned.missed, planned.next_run_at) == (0, None)


def test_a_due_time_after_the_end_fires_nothing():
    assert plan(cron(next_run_at=NOON, end=NOON - SECOND), NOON + HOUR) == FiringPlan()


def test_a_stored_due_time_is_kept_even_where_the_schedule_has_no_such_instant():
    planned = plan(cron(spec=DAILY, next_run_at=NOON), NOON + SECOND)
    assert [fire.due_at for fire in planned.fires] == [NOON]
    assert planned.next_run_at == NOON + 21 * HOUR


def test_a_row_whose_schedule_cannot_be_read_says_so():
    with pytest.raises(InvalidSchedule):
        plan(cron(spec='{"kind":"cron","expr":"0 0 31 2 *"}', next_run_at=NOON), NOON)
    with pytest.raises(InvalidSchedule):
        plan(cron(tz="Mars/Base", next_run_at=NOON), NOON)


schedules = st.sampled_from(
    [
        (HOURLY, "UTC"),
        (EVERY_MINUTE, "Australia/Lord_Howe"),
        (DAILY, "Pacific/Apia"),
        ('{"kind":"cron","expr":"*/20 1-3 * * *"}', "America/New_York"),
        ('{"kind":"cron","expr":"*/7 * * * * *"}', "Europe/Dublin"),
        (every(seconds=1), "UTC"),
        (every(milliseconds=1500), "UTC"),
        (every(days=3), "UTC"),
    ]
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    schedule=schedules,
    catch_up=st.sampled_from(CatchUp),
    overlap=st.sampled_from(Overlap),
    outage=st.timedeltas(timedelta(0), timedelta(days=40)),
    since=st.timedeltas(timedelta(0), timedelta(days=400)),
    window=st.none() | st.timedeltas(timedelta(0), timedelta(days=30)),
    cap=st.integers(0, 20),
    live=st.integers(0, 1),
)
def test_what_elapsed_is_fired_or_missed_and_nothing_else(
    schedule, catch_up, overlap, outage, since, window, cap, live
):
    spec, tz = schedule
    declared = NOON + since
    due = compute_next_run(spec, tz, declared, anchor=NOON)
    end = None if window is None else declared + window
    row = cron(spec=spec, tz=tz, catch_up=catch_up, overlap=overlap, next_run_at=due, anchor=NOON, end=end)
    now = due + outage
    planned = plan(row, now, cap=cap, live=live)
    elapsed = count_occurrences(spec, tz, declared, now if end is None else min(now, end), anchor=NOON)
    assert len(planned.fires) + planned.missed == elapsed
    assert planned.missed == sum(run.count for run in planned.missed_runs)
    assert len(planned.fires) <= max(1, cap)
    for run in planned.missed_runs:
        assert count_occurrences(spec, tz, run.due_at - MICROSECOND, run.last_due_at, anchor=NOON) == run.count
    told = [run.due_at for run in planned.missed_runs] + [fire.due_at for fire in planned.fires]
    assert told == sorted(set(told))
    assert planned.next_run_at is None or planned.next_run_at > now
    if end is None:
        assert planned.next_run_at == compute_next_run(spec, tz, now, anchor=NOON)


def test_jitter_is_the_same_for_ever_for_one_cron_and_spreads_many():
    limit = timedelta(seconds=10)
    delays = [jitter_of(UUID(int=n), limit) for n in range(200)]
    assert delays == [jitter_of(UUID(int=n), limit) for n in range(200)]
    assert all(timedelta(0) <= delay <= limit for delay in delays)
    assert min(delays) < SECOND
    assert max(delays) > 9 * SECOND


@pytest.mark.parametrize("limit", [timedelta(0), -SECOND])
def test_no_jitter_is_no_delay(limit):
    assert jitter_of(UUID(int=1), limit) == timedelta(0)
