"""Break the package in one way after another: the test that guards the promise must fail each time.

Too slow for every run, and so not named like a test; ``make mutants`` asks for this file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.mutants.mutants import MUTANTS
from tests.mutants.workshop import break_in, copy, run_tests

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mutants.workshop import Run

DATABASE = os.environ.get("HELISCHED_TEST_DB", "sqlite")
DATABASES = sorted({mutant.database or DATABASE for mutant in MUTANTS.values()})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return copy(tmp_path)


def answered(run: Run) -> Run:
    """Return a run that had its server; on a laptop without it, skip. With CI set the run has failed by itself."""
    if run.missing:
        pytest.skip(run.missing)
    return run


@pytest.mark.parametrize("database", DATABASES)
def test_the_package_as_it_is_passes_the_same_tests(place: Path, database: str):
    tests = sorted({each.caught_by for each in MUTANTS.values() if (each.database or DATABASE) == database})
    run = answered(run_tests(place, tests, database))
    assert (run.is_complete, run.failed) == (True, frozenset()), run.output
    assert f"{place}" in run.output


@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_mutant_is_seen(place: Path, name: str):
    mutant = MUTANTS[name]
    break_in(place, mutant)
    run = answered(run_tests(place, [mutant.caught_by], mutant.database or DATABASE))
    assert run.is_complete, run.output
    assert any(failed.startswith(mutant.caught_by) for failed in run.failed), f"nobody saw it:\n{run.output}"
