"""Say what an idle runscheduler costs: CPU, memory, statements.

    python benchmarks/idle.py [--seconds 30]

Runs on the database that tests.settings selects (HELISCHED_TEST_DB), in a
database of its own that is removed afterwards. CPU is the process's own time
between two readings of /proc, after it has settled; Linux only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETTLE = 5.0  # seconds of a start that are not idling
TICKS = os.sysconf("SC_CLK_TCK")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
sys.path.insert(0, str(ROOT))


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_megabytes(pid: int) -> float:
    """Return the process's resident memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(name: str, seconds: float) -> str:
    """Run one scheduler on the database ``name`` and return the figures as a line."""
    environment = {**os.environ, "HELISCHED_TEST_NAME": name}
    command = [sys.executable, "-m", "django", "runscheduler"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    never = threading.Event()
    try:
        never.wait(SETTLE)
        before = cpu_seconds(process.pid)
        never.wait(seconds)
        used = cpu_seconds(process.pid) - before
        memory = resident_megabytes(process.pid)
    finally:
        process.terminate()
        code = process.wait(timeout=30)
    share = 100 * used / seconds
    return f"idle for {seconds:g} s: {share:.2f} % of a core, {memory:.0f} MB resident, exit code {code}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=30.0)
    seconds = parser.parse_args().seconds

    import django  # the settings come first
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    made = setup_databases(verbosity=0, interactive=False)
    try:
        name = str(connection.settings_dict["NAME"])
        connection.close()
        print(f"{connection.vendor}: {measure(name, seconds)}")
    finally:
        teardown_databases(made, verbosity=0)


if __name__ == "__main__":
    main()
