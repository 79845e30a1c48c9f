"""Copies of the package and its tests, in which one thing is broken."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.mutants.mutants import Edit, Mutant

ROOT = Path(__file__).parents[2]
PARTS = ("django_helisched", "tests", "pyproject.toml")
MINUTES = 5  # no test of one mutant takes as long, unless it waits for ever


class NoLongerApplies(Exception):
    """The passage that a mutant changes does not stand in the file, or more than once."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of tests said: which failed, whether it went as tests go, which server was missing, all it printed."""

    failed: frozenset[str]
    is_complete: bool
    missing: str
    output: str


def applied(edit: Edit, text: str) -> str:
    """Return a file's text with the edit in it."""
    count = text.count(edit.old)
    if count != 1:
        raise NoLongerApplies(f"{edit.file} has this passage {count} times and not once:\n{edit.old}")
    return text.replace(edit.old, edit.new)


def copy(place: Path) -> Path:
    """Copy the package and its tests to a new directory, and return it."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, place / part, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy(source, place / part)
    return place


def break_in(place: Path, mutant: Mutant) -> None:
    """Apply a mutant to a copy."""
    for edit in mutant.edits:
        file = place / edit.file
        file.write_text(applied(edit, file.read_text()))


def run_tests(place: Path, tests: list[str], database: str) -> Run:
    """Run tests of a copy, on the copy's package, in a database of its own."""
    env = {
        **os.environ,
        "HELISCHED_TEST_DB": database,
        "HELISCHED_TEST_SUFFIX": f"mutant_{os.getpid()}",
        "PYTHONPATH": str(place),
    }
    env.pop("HELISCHED_TEST_NAME", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-rfs", "-p", "no:cacheprovider", *tests],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        timeout=60 * MINUTES,
        check=False,
    )
    output = done.stdout + done.stderr
    missing = re.search(r"The \w+ server at .*", output)
    return Run(
        failed=frozenset(re.findall(r"^FAILED (.+?)(?: - .*)?$", output, re.MULTILINE)),
        is_complete=done.returncode in {0, 1},
        missing=missing[0] if missing and done.returncode == 0 else "",
        output=output,
    )
