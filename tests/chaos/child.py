"""A management command in a process whose wall clock is CHAOS_SKEW seconds wrong.

``python -m tests.chaos.child runscheduler ...``
"""

from __future__ import annotations

import os
import sys
import time

from django.core.management import execute_from_command_line


def skew(seconds: float) -> None:
    """Set this process's idea of the time wrong, before anything has asked for it."""
    told, told_ns, wrong_ns = time.time, time.time_ns, int(seconds * 1_000_000_000)
    time.time = lambda: told() + seconds
    time.time_ns = lambda: told_ns() + wrong_ns


if __name__ == "__main__":
    skew(float(os.environ["CHAOS_SKEW"]))
    execute_from_command_line(["manage.py", *sys.argv[1:]])
