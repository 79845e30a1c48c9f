from __future__ import annotations

import math

import pytest

from benchmarks.figures import Figure, percentile, ratio, summary


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([5.0], 0.5, 5.0), ([1, 2, 3, 4], 0.5, 2), ([4, 3, 2, 1], 0.99, 4), (list(range(1, 101)), 0.99, 99)],
)
def test_percentile_is_a_value_that_was_measured(values, share, expected):
    assert percentile(values, share) == expected


def test_no_values_have_no_percentile():
    with pytest.raises(ValueError, match="no percentile"):
        percentile([], 0.5)


def test_summary_takes_the_median_of_the_rounds_and_leaves_out_those_that_failed():
    records = [record(100.0), record(300.0), record(120.0), {**record(0.0), "figures": {}, "error": "stuck"}]
    assert summary(records) == {("postgres", "noop", "huey", "jobs/s"): Figure(120.0, 100.0, 300.0, 3)}


def test_figures_of_different_cases_are_not_mixed():
    other = record(7.0) | {"case": "write"}
    assert [figure.median for figure in summary([record(1.0), other]).values()] == [1.0, 7.0]


def test_ratio_says_how_many_times_better_ours_is():
    assert ratio(200, 100) == 2
    assert ratio(2, 4, lower_is_better=True) == 2
    assert ratio(4, 2, lower_is_better=True) == 0.5
    assert ratio(1, 0) == math.inf


def record(rate):
    return {"database": "postgres", "case": "noop", "peer": "huey", "figures": {"jobs/s": rate}}
