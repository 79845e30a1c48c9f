"""What can be seen of a worker from outside: how many bodies ran, its processor time, its memory. Linux only."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

LOOK = 0.002  # seconds between two looks at the marks
TICKS = os.sysconf("SC_CLK_TCK")


class Stuck(Exception):
    """The worker did not do what was waited for in time."""


@dataclass(frozen=True)
class Seen:
    """How many marks there were at an instant of the monotonic clock."""

    at: float
    count: int


def wait_for_marks(marks: Path, count: int, seconds: float) -> Seen:
    """Return as soon as ``count`` bodies have run; raise Stuck after ``seconds``."""
    never, end = threading.Event(), time.monotonic() + seconds
    while True:
        seen = Seen(time.monotonic(), marks.stat().st_size if marks.exists() else 0)
        if seen.count >= count:
            return seen
        if seen.at > end:
            raise Stuck(f"{seen.count} of {count} jobs ran in {seconds:.0f} s")
        never.wait(LOOK)


def family(pid: int) -> list[int]:
    """Return the process and everything it has started."""
    found, parents = [pid], {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                parents[int(entry.name)] = int(fields[1])
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def processor_seconds(pids: list[int]) -> float:
    """Return the user and system time that the processes have used."""
    stats = [_stat(pid) for pid in pids]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats if fields) / TICKS


def megabytes(pids: list[int]) -> float:
    """Return the memory of the processes; what they share is counted once."""
    return sum(_proportional(pid) for pid in pids) / 1e3


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
