from __future__ import annotations

import pytest

from benchmarks.figures import Figure
from benchmarks.tables import Column, Group, group_table, growth_table, spelled, table

RATES = Group("Execution", (Column("empty", "noop", "jobs/s"), Column("writes", "write", "jobs/s")))
COSTS = Group("Pickup", (Column("p50", "pickup", "p50 ms", lower_is_better=True),))
OURS = "django-helisched"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (12345.6, "12,300"),
        (999.4, "999"),
        (101.0, "101"),
        (12.345, "12.3"),
        (0.2, "0.2"),
        (0, "0"),
        (0.00123, "0.0012"),
    ],
)
def test_numbers_have_three_figures_that_mean_something(value, expected):
    assert spelled(value) == expected


def test_one_row_for_each_peer_and_the_ratio_to_the_best_below():
    found = {
        **figure("postgres", "noop", OURS, "jobs/s", 9000),
        **figure("postgres", "noop", "huey", "jobs/s", 3000),
        **figure("postgres", "noop", "dj-queue", "jobs/s", 600),
        **figure("postgres", "noop", "plain SQL, driver", "jobs/s", 40000),
        **figure("postgres", "write", OURS, "jobs/s", 2000),
        **figure("sqlite", "noop", "huey", "jobs/s", 99999),
    }
    lines = group_table(RATES, "postgres", found, [OURS, "huey", "dj-queue", "django-q2", "plain SQL, driver"])
    assert lines == [
        "|  | empty | writes |",
        "|---|---:|---:|",
        "| django-helisched | 9,000 | 2,000 |",
        "| huey | 3,000 | – |",
        "| dj-queue | 600 | – |",
        "| plain SQL, driver | 40,000 | – |",
        "| ours against the best peer | × 3 | – |",
    ]


def test_the_best_peer_is_the_lowest_where_lower_is_better():
    found = {
        **figure("postgres", "pickup", OURS, "p50 ms", 1.0),
        **figure("postgres", "pickup", "huey", "p50 ms", 1.5),
        **figure("postgres", "pickup", "django-ox", "p50 ms", 500),
    }
    assert (
        group_table(COSTS, "postgres", found, [OURS, "huey", "django-ox"])[-1]
        == "| ours against the best peer | × 1.5 |"
    )


def test_a_group_that_nobody_measured_has_no_table():
    assert group_table(COSTS, "postgres", {}, [OURS]) == []


def test_growth_is_told_against_the_empty_table_of_the_same_database():
    found = {
        **figure("postgres", "growth", OURS, "finished", 1.1),
        **figure("postgres", "growth", OURS, "empty", 1.0),
        **figure("sqlite", "growth", OURS, "empty", 0.5),
        **figure("postgres", "growth", OURS, "empty, a look", 0.2),
        **figure("postgres", "growth", OURS, "finished, a look", 0.1),
    }
    assert growth_table(found) == [
        "| rows around | postgres | sqlite |",
        "|---|---:|---:|",
        "| empty | 1.00 ms, × 1.00 | 0.50 ms, × 1.00 |",
        "| finished | 1.10 ms, × 1.10 | – |",
        "| empty, a look | 0.20 ms, × 1.00 | – |",
        "| finished, a look | 0.10 ms, × 0.50 | – |",
    ]


def test_a_bar_in_a_word_does_not_break_the_table():
    assert table(["a|b"], []) == ["| a&#124;b |", "|---|"]


def figure(database, case, peer, name, value):
    return {(database, case, peer, name): Figure(value, value, value, 5)}
