"""testing.simulate: a project's schedules over a long time, without a database."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from django_helisched import cron_jobs
from django_helisched.exceptions import InvalidOption
from django_helisched.testing.simulate import simulate
from tests.app.jobs import note, send

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
NEXT_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_a_year_of_nights_in_paris_has_each_night_once():
    crons = cron_jobs()
    crons.cron("backup", "30 2 * * *", note, ["x"], tz="Europe/Paris")
    crons.hourly("rates", minute_utc=5, fn=note, args=["x"])
    year = simulate(crons, NEW_YEAR, NEXT_YEAR)
    backups = year.of("backup")
    assert len(backups.fires) == 365
    # On 29 March 02:30 is skipped and comes as 03:30, the same instant; on 25 October it is the first of two.
    distances = Counter(later - sooner for sooner, later in pairwise(backups.due_times))
    assert distances == {DAY: 362, DAY - HOUR: 1, DAY + HOUR: 1}
    assert len(year.of("rates").fires) == 365 * 24
    assert (year.missed_count, year.notices) == (0, ())
    assert {fire.fired_at - fire.due_at for fire in year.fires} == {timedelta(0)}
    assert [cron.fired for cron in year.crons] == [365, 8760]


def test_an_outage_is_made_up_for_as_each_cron_says():
    crons = cron_jobs()
    for catch_up in ("skip", "fire_once", "fire_all"):
        crons.cron(catch_up, "0 * * * *", note, ["x"], catch_up=catch_up)
    outage = (NEW_YEAR + 5.5 * HOUR, NEW_YEAR + 10.5 * HOUR)
    day = simulate(crons, NEW_YEAR, NEW_YEAR + 12 * HOUR, outages=[outage])
    assert day.of("skip").due_times == [NEW_YEAR + hour * HOUR for hour in (1, 2, 3, 4, 5, 11, 12)]
    assert day.of("fire_once").due_times == [NEW_YEAR + hour * HOUR for hour in (1, 2, 3, 4, 5, 10, 11, 12)]
    assert day.of("fire_all").due_times == [NEW_YEAR + hour * HOUR for hour in range(1, 13)]
    assert [day.of(name).missed_count for name in ("skip", "fire_once", "fire_all")] == [5, 4, 0]
    [miss] = day.of("fire_once").missed
    assert (miss.due_at, miss.last_due_at, miss.count) == (NEW_YEAR + 6 * HOUR, NEW_YEAR + 9 * HOUR, 4)
    late = [fire for fire in day.of("fire_all").fires if fire.fired_at != fire.due_at]
    assert {fire.fired_at for fire in late} == {outage[1]}
    assert len(late) == 5


def test_every_occurrence_is_accounted_for_whatever_goes_wrong():
    crons = cron_jobs()
    for number, catch_up in enumerate(("skip", "fire_once", "fire_all")):
        crons.interval(catch_up, (7 + number) * MINUTE, note, ["x"], catch_up=catch_up)
        crons.cron(f"{catch_up} by the clock", "*/20 3 * * *", note, ["x"], catch_up=catch_up, tz="America/New_York")
    outages = [(NEW_YEAR + day * DAY, NEW_YEAR + day * DAY + 9 * HOUR) for day in (1, 2)]
    days = simulate(crons, NEW_YEAR, NEW_YEAR + 4 * DAY, outages=outages, skew=[10 * MINUTE, -10 * MINUTE])
    for cron in days.crons:
        own = days.of(cron.name)
        assert (cron.fired, cron.missed) == (len(own.fires), own.missed_count)
        assert len(set(own.due_times)) == len(own.due_times)
    expected = {
        name: 4 * DAY // (minutes * MINUTE) for name, minutes in (("skip", 7), ("fire_once", 8), ("fire_all", 9))
    }
    for name, elapsed in expected.items():
        own = days.of(name)
        # A clock that is ahead has fired what falls due within ten minutes.
        assert len(own.fires) + own.missed_count - elapsed in {0, 1, 2}


def test_a_scheduler_whose_clock_is_ahead_fires_early_and_nothing_twice():
    crons = cron_jobs()
    crons.cron("hourly", "0 * * * *", note, ["x"])
    day = simulate(crons, NEW_YEAR, NEW_YEAR + DAY, skew=10 * MINUTE)
    assert day.due_times == [NEW_YEAR + hour * HOUR for hour in range(1, 25)]
    assert {fire.due_at - fire.fired_at for fire in day.fires} == {10 * MINUTE}
    assert {job.started_at - job.due_at for job in day.jobs if job.started_at} == {timedelta(0)}


def test_a_scheduler_whose_clock_is_behind_changes_nothing():
    crons = cron_jobs()
    crons.cron("hourly", "0 * * * *", note, ["x"])
    day = simulate(crons, NEW_YEAR, NEW_YEAR + DAY, skew=-10 * MINUTE)
    assert {fire.due_at - fire.fired_at for fire in day.fires} == {timedelta(0)}
    assert len(day.fires) == 24


@pytest.mark.parametrize(
    ("overlap", "fired", "ended"),
    [("allow", 10, {"success": 7, "in_progress": 3}), ("skip", 4, {"success": 3, "in_progress": 1})],
)
def test_runs_take_their_time_and_overlap_as_the_cron_allows(overlap, fired, ended):
    crons = cron_jobs()
    crons.interval("slow", MINUTE, note, ["x"], overlap=overlap)
    some = simulate(crons, NEW_YEAR, NEW_YEAR + 10 * MINUTE, runtime={"slow": 2.5 * MINUTE})
    assert len(some.fires) == fired
    assert some.missed_count == 10 - fired
    assert Counter(job.state for job in some.jobs) == ended
    assert {miss.outcome for miss in some.missed} <= {"skipped_overlap"}


def test_jobs_that_may_not_overlap_never_do():
    crons = cron_jobs()
    crons.interval("slow", MINUTE, note, ["x"], overlap="skip")
    some = simulate(crons, NEW_YEAR, NEW_YEAR + HOUR, runtime=2.5 * MINUTE)
    runs = [(job.started_at, job.ended_at) for job in some.jobs if job.started_at and job.ended_at]
    assert len(runs) == 19
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(runs))


def test_with_cancel_previous_each_fire_ends_the_run_before():
    crons = cron_jobs()
    crons.interval("chart", MINUTE, note, ["x"], overlap="cancel_previous")
    some = simulate(crons, NEW_YEAR, NEW_YEAR + 4 * MINUTE, runtime=HOUR)
    assert [job.state for job in some.jobs] == ["canceled", "canceled", "canceled", "in_progress"]
    assert [job.ended_at for job in some.jobs[:3]] == [NEW_YEAR + number * MINUTE for number in (2, 3, 4)]


def test_jitter_delays_the_start_and_not_the_occurrence():
    crons = cron_jobs()
    crons.cron("spread", "0 * * * *", note, ["x"], jitter=10 * MINUTE)
    day = simulate(crons, NEW_YEAR, NEW_YEAR + DAY + HOUR)
    delays = {job.started_at - job.due_at for job in day.jobs if job.started_at is not None}
    assert len(delays) == 1
    assert timedelta(0) <= delays.pop() <= 10 * MINUTE


def test_a_job_shows_what_it_would_run():
    crons = cron_jobs()
    crons.cron("digest", "0 9 * * *", send, {"mark": "x"}, space="acme")
    [job] = simulate(crons, NEW_YEAR, NEW_YEAR + DAY).jobs
    assert (job.name, job.space, job.fn_path) == ("digest", "acme", "tests.app.jobs.send")
    assert (job.args, job.kwargs, job.state) == ([], {"mark": "x"}, "success")
    assert job.due_at == job.started_at == job.ended_at == NEW_YEAR + 9 * HOUR


def test_declarations_alone_will_do_and_a_name_that_two_have_is_refused():
    crons = cron_jobs()
    crons.cron("digest", "0 9 * * *", note, ["x"])
    assert len(simulate(crons.entries(), NEW_YEAR, NEW_YEAR + DAY).fires) == 1
    with pytest.raises(InvalidOption, match="twice"):
        simulate([*crons, *crons.entries(), *_again()], NEW_YEAR, NEW_YEAR + DAY)


def _again():
    crons = cron_jobs()
    crons.cron("digest", "0 10 * * *", note, ["x"])
    return crons.entries()


def test_what_ends_or_begins_within_the_time_does():
    crons = cron_jobs()
    crons.interval("window", HOUR, note, ["x"], start=NEW_YEAR + 2 * HOUR, end=NEW_YEAR + 4 * HOUR)
    day = simulate(crons, NEW_YEAR, NEW_YEAR + DAY)
    assert day.due_times == [NEW_YEAR + hour * HOUR for hour in (2, 3, 4)]
    assert day.crons[0].next_run_at is None
