"""The example's plain modules are imported as they are; what needs its settings runs in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "example_project"
sys.path.append(str(EXAMPLE))

# What a developer's shell or the outer test run may have set, and the example reads.
OWN_VARIABLES = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "DEBUG", "SECRET_KEY", "STORM", "DEMO_SECONDS", "DEMO_PORT")


@pytest.fixture
def example(tmp_path):
    """Give a function that runs a script of the example on a database of its own."""
    clean = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}

    def run(*arguments, timeout=120, **environment):
        given = {"DATABASE_URL": f"sqlite:///{tmp_path}/example.sqlite3", **environment}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=EXAMPLE.parent,
            env={**clean, **given},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
