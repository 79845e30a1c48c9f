"""Settings for mypy's Django plugin alone: every model in the repository, the example's too."""

import sys
from pathlib import Path

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as TESTED_APPS

sys.path.append(str(Path(__file__).parents[1] / "example_project"))

INSTALLED_APPS = [*TESTED_APPS, "lighthouse"]
LIGHTHOUSE_STORM = 0
