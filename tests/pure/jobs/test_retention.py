"""Which finished jobs may go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from django_helisched.jobs.ids import first_id, uuid7
from django_helisched.jobs.job import State
from django_helisched.jobs.retention import Cut, Keep, Retention, Ties, cut_of, is_free, is_spent
from django_helisched.testing.contract.factories import SECOND, TICK
from tests.pure.jobs.factories import job

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def cut(keep: Keep, *, key_ttl: timedelta = 7 * DAY, surplus: UUID | None = None) -> Cut:
    made = cut_of(State.SUCCESS, keep, now=NOW, key_ttl=key_ttl, surplus=surplus)
    assert made is not None
    return made


def ended(age: timedelta, **fields: Any) -> Any:
    given = {"state": State.SUCCESS, "completed_at": NOW - age, "id": first_id(NOW - age), **fields}
    return job(**given)


def test_what_ended_longer_ago_than_its_age_may_go():
    week = cut(Keep(age=7 * DAY))
    assert is_spent(ended(7 * DAY + TICK), week)
    assert not is_spent(ended(7 * DAY), week)


def test_a_job_that_was_made_long_ago_and_ended_now_stays():
    assert not is_spent(ended(SECOND, id=first_id(NOW - 90 * DAY)), cut(Keep(age=7 * DAY)))


@pytest.mark.parametrize("state", [State.PENDING, State.IN_PROGRESS, State.FAILED])
def test_a_job_in_another_state_stays(state: State):
    assert not is_spent(ended(90 * DAY, state=state), cut(Keep(age=7 * DAY)))


def test_a_key_keeps_its_job_until_its_time_is_over():
    hour = cut(Keep(age=timedelta(hours=1)))
    assert not is_spent(ended(7 * DAY, key_digest="d"), hour)
    assert is_spent(ended(7 * DAY + TICK, key_digest="d"), hour)
    assert is_spent(ended(2 * DAY, key_digest=None, idempotency_key="k"), hour)


def test_what_is_one_too_many_may_go_whatever_its_age_but_for_its_key():
    newest = first_id(NOW - SECOND)
    few = cut(Keep(count=1), surplus=newest)
    assert is_spent(ended(SECOND), few)
    assert not is_spent(ended(TICK), few)
    assert not is_spent(ended(SECOND, key_digest="d"), few)


def test_either_bound_is_enough():
    both = cut(Keep(age=DAY, count=1), surplus=first_id(NOW - 2 * DAY))
    assert is_spent(ended(DAY + TICK), both)
    newer = cut(Keep(age=DAY, count=1), surplus=first_id(NOW - SECOND))
    assert is_spent(ended(SECOND), newer)


def test_without_bounds_nothing_is_cut():
    assert cut_of(State.FAILED, Keep(), now=NOW, key_ttl=DAY) is None
    assert cut_of(State.FAILED, Keep(count=500), now=NOW, key_ttl=DAY, surplus=None) is None


def test_no_job_that_may_go_has_an_id_at_or_behind_the_cut():
    for made in (cut(Keep(age=DAY)), cut(Keep(age=DAY, count=9), surplus=first_id(NOW - TICK))):
        spent = [ended(age) for age in (TICK, SECOND, DAY, DAY + TICK, 2 * DAY) if is_spent(ended(age), made)]
        assert spent
        assert max(job.id for job in spent) < made.before


def test_an_age_longer_than_time_itself_keeps_everything():
    assert not is_spent(ended(365 * DAY), cut(Keep(age=timedelta.max)))


@pytest.mark.parametrize("tie", ["parent_is_there", "has_live_child", "batch_is_open"])
def test_whoever_is_needed_stays(tie: str):
    assert is_free(Ties())
    assert not is_free(Ties(**{tie: True}))


def test_a_moments_first_id_stands_before_all_others_of_it():
    before = datetime.now(UTC)  # noqa: TID251  # ids are made of this clock
    made = uuid7()
    assert first_id(before.replace(microsecond=before.microsecond // 1000 * 1000)) <= made
    assert made < first_id(before + timedelta(hours=1))
    assert (first_id(NOW).version, first_id(datetime.min.replace(tzinfo=UTC)).int >> 80) == (7, 0)


def test_failures_are_kept_longer_than_successes():
    retention = Retention()
    assert retention.of(State.SUCCESS) == retention.of(State.CANCELED) == Keep(age=7 * DAY)
    assert retention.of(State.FAILED) == Keep(age=30 * DAY)
