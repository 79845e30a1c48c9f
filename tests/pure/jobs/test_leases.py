from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.leases import Lapse, confirm_write, heartbeat_interval, judge_lapses

LEASE = timedelta(seconds=30)
TICK = timedelta(milliseconds=1)
EXPIRED_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
LAPSE = Lapse(job_id=uuid7(), fence=3, lease_expires_at=EXPIRED_AT)


def look(after: timedelta, seen=None, lapse=LAPSE):
    return judge_lapses([lapse], seen or {}, now=EXPIRED_AT + after, lease=LEASE)


def test_leases_are_renewed_every_third_of_their_length():
    assert heartbeat_interval(LEASE) == timedelta(seconds=10)


def test_a_first_look_waits_and_remembers():
    ripe, seen = look(TICK)
    assert ripe == []
    assert seen[LAPSE.job_id].lapse == LAPSE
    assert (seen[LAPSE.job_id].seen_at, seen[LAPSE.job_id].written_since) == (EXPIRED_AT + TICK, False)


def test_a_second_look_sweeps_after_a_heartbeat_interval_and_a_write():
    _, seen = look(TICK)
    confirmed = confirm_write(seen)
    assert look(TICK + LEASE / 3 - TICK, confirmed)[0] == []
    assert look(TICK + LEASE / 3, confirmed) == ([LAPSE], {})


def test_a_second_look_without_a_write_in_between_goes_on_waiting():
    _, seen = look(TICK)
    ripe, still = look(LEASE, seen)
    assert (ripe, still) == ([], seen)


def test_a_look_keeps_the_instant_of_the_first():
    _, seen = look(TICK)
    _, later = look(2 * TICK, confirm_write(seen))
    assert later[LAPSE.job_id].seen_at == EXPIRED_AT + TICK
    assert later[LAPSE.job_id].written_since


def test_another_fence_or_expiry_is_another_lapse():
    _, seen = look(TICK)
    for other in (
        Lapse(job_id=LAPSE.job_id, fence=4, lease_expires_at=EXPIRED_AT),
        Lapse(job_id=LAPSE.job_id, fence=3, lease_expires_at=EXPIRED_AT + TICK),
    ):
        ripe, later = look(LEASE, confirm_write(seen), other)
        assert ripe == []
        assert later[LAPSE.job_id].seen_at == EXPIRED_AT + LEASE
        assert not later[LAPSE.job_id].written_since


def test_a_lapse_longer_than_a_lease_needs_no_second_look():
    assert look(LEASE)[0] == []
    assert look(LEASE + TICK) == ([LAPSE], {})


def test_what_is_no_longer_lapsed_is_forgotten():
    _, seen = look(TICK)
    assert judge_lapses([], seen, now=EXPIRED_AT + LEASE, lease=LEASE) == ([], {})


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=30))
def test_every_lapse_is_swept_or_waits_and_none_waits_longer_than_a_lease(milliseconds):
    lapses = [Lapse(job_id=uuid7(), fence=1, lease_expires_at=EXPIRED_AT - each * TICK) for each in milliseconds]
    ripe, waiting = judge_lapses(lapses, {}, now=EXPIRED_AT, lease=LEASE)
    assert [lapse.job_id for lapse in ripe] + list(waiting) != []
    assert {lapse.job_id for lapse in lapses} == {lapse.job_id for lapse in ripe} | set(waiting)
    assert all(EXPIRED_AT - lapse.lease_expires_at > LEASE for lapse in ripe)
    assert all(EXPIRED_AT - sighting.lapse.lease_expires_at <= LEASE for sighting in waiting.values())
