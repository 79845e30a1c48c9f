"""How a body says that it runs: one byte, or one line with the time, at the end of the file BENCH_MARKS."""

from __future__ import annotations

import os
import time
from functools import lru_cache


@lru_cache(maxsize=1)
def _file() -> int:
    return os.open(os.environ["BENCH_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def mark() -> None:
    """Count one job: the runner reads the size of the file."""
    os.write(_file(), b".")


def stamp(number: int) -> None:
    """Note when job ``number`` began, on the clock that all processes of one machine share."""
    os.write(_file(), f"{number} {time.monotonic_ns()}\n".encode())
