"""Set this process's wall clock wrong, by HELISCHED_TEST_SKEW seconds. Python imports it at the start."""

import os
import time

SKEW = float(os.environ.get("HELISCHED_TEST_SKEW", "0"))
_time, _time_ns = time.time, time.time_ns


def skewed() -> float:
    return _time() + SKEW


def skewed_ns() -> int:
    return _time_ns() + int(SKEW * 1e9)


time.time, time.time_ns = skewed, skewed_ns
