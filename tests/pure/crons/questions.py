"""The two questions, for schedules of which the test knows that they go on."""

from __future__ import annotations

from datetime import datetime

from django_helisched.crons.occurrences import compute_next_run, compute_prev_run


def following(spec, tz: str, after: datetime, **facts) -> datetime:
    found = compute_next_run(spec, tz, after, **facts)
    assert found is not None
    return found


def preceding(spec, tz: str, at: datetime) -> datetime:
    found = compute_prev_run(spec, tz, at)
    assert found is not None
    return found
