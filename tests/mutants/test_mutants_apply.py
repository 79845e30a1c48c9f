"""Every mutant still has something to break; ``make mutants`` shows that it is seen."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.mutants import MUTANTS
from tests.mutants.workshop import ROOT, applied

CONTRACT = ROOT / "django_helisched/testing/contract"


@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_mutant_changes_what_stands_in_the_package_and_its_test_exists(name: str):
    texts: dict[str, str] = {}
    for edit in MUTANTS[name].edits:
        text = texts.get(edit.file) or (ROOT / edit.file).read_text()
        texts[edit.file] = applied(edit, text)
    for text in texts.values():
        ast.parse(text)
    file, *kind, test = MUTANTS[name].caught_by.split("::")
    # A class of the contract's tests has its methods from the package.
    files = [*CONTRACT.glob("*.py")] if kind else [ROOT / file]
    assert any(f"def {test.split('[')[0]}(" in found.read_text() for found in files)
