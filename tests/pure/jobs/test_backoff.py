from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_helisched.jobs.backoff import DEFAULT_BACKOFF, Backoff, compute_backoff

FULL = 1 - 2**-53  # the greatest number that a generator of 0 <= x < 1 gives


def seconds(attempts: int, options: Backoff = DEFAULT_BACKOFF, draw: float = FULL) -> float:
    return compute_backoff(attempts, lambda: draw, options).total_seconds()


@pytest.mark.parametrize(("attempts", "milliseconds"), [(1, 400), (2, 800), (3, 1600), (10, 204_800)])
def test_the_first_retry_waits_the_initial_delay_times_the_square_of_the_base(attempts, milliseconds):
    options = Backoff(initial=0.1, base=2, max=1e6)
    assert seconds(attempts, options) == pytest.approx(milliseconds / 1000)


@pytest.mark.parametrize(("attempts", "expected"), [(1, 1), (2, 2), (3, 4), (9, 256), (10, 512), (11, 600), (50, 600)])
def test_the_defaults_double_from_one_second_to_ten_minutes(attempts, expected):
    assert seconds(attempts) == pytest.approx(expected)


def test_the_draw_scales_the_delay_from_half_to_all_of_it():
    assert [seconds(1, draw=draw) for draw in (0, 0.5, FULL)] == pytest.approx([0.5, 0.75, 1])


@given(st.integers(0, 10**400), st.floats(0, FULL), st.floats(0, 1e9), st.floats(1, 1e9), st.floats(0, 1e9))
def test_every_count_gives_a_delay_within_its_bounds(attempts, draw, initial, base, ceiling):
    options = Backoff(initial=initial, base=base, max=ceiling)
    full = seconds(attempts, options)
    assert 0 <= full <= ceiling + 1e-6
    delay = seconds(attempts, options, draw)
    assert full / 2 - 1e-5 <= delay <= full + 1e-5


@given(st.integers(0, 2000), st.floats(0, 10), st.floats(1, 10))
def test_a_later_failure_never_waits_less(attempts, initial, base):
    options = Backoff(initial=initial, base=base)
    assert seconds(attempts, options) <= seconds(attempts + 1, options)


def test_no_initial_delay_means_no_delay_whatever_the_count():
    assert compute_backoff(10**6, lambda: 0.5, Backoff(initial=0)) == timedelta(0)


def test_one_draw_is_made_for_one_delay():
    draws = iter([0.5])
    compute_backoff(3, lambda: next(draws))
    assert list(draws) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"initial": -0.1},
        {"base": 0.5},
        {"max": -1},
        {"initial": float("nan")},
        {"base": float("inf")},
        {"max": float("nan")},
    ],
)
def test_impossible_delays_are_refused_with_their_values(wrong):
    with pytest.raises(ValueError, match=r"^backoff initial=.*, base=.*, max=.*: initial and max must be"):
        Backoff(**wrong)
