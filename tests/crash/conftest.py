from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.crash.fleet import Fleet

# A file is never away, and has no connections that somebody could end; MariaDB tells nobody.
_NOT_ON = {"sqlite": ["test_outage.py", "test_line.py"], "mariadb": ["test_wakeup.py", "test_line.py"]}
collect_ignore = _NOT_ON.get(os.environ.get("HELISCHED_TEST_DB", "sqlite"), [])

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def fleet(transactional_db: None, child_env: dict[str, str], tmp_path: Path) -> Iterator[Fleet]:
    """Give a fleet on this run's database; its processes end with the test, their output is shown on failure."""
    fleet = Fleet(child_env, tmp_path)
    yield fleet
    fleet.stop()
    sys.stdout.write(fleet.output())
