"""A short run of what ``make chaos`` does at length."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.chaos.run import chaos

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 10.0
SLACK = 10.0  # seconds: a busy machine may be late, and yet nothing may be lost


@pytest.mark.django_db(transaction=True)
def test_nothing_is_lost_or_doubled_while_processes_die_stand_still_and_restart(
    child_env: dict[str, str], tmp_path: Path
):
    figures, breaches = chaos(child_env, tmp_path, seconds=SECONDS, seed=1, slack=SLACK, size=4)
    sys.stdout.write("\n".join(figures))
    assert breaches == []
