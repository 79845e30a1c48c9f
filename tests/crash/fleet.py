"""Start real runscheduler processes, kill them, and wait for what must come true."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEADLINE = 60.0  # seconds: far more than anything here takes, and an end to a hang
LOOK_EVERY = 0.05  # seconds between two looks
LEASE = 1.0  # seconds
QUICK = {"LEASE": LEASE, "SWEEP": 0.5, "POLL": {"min": 0.02, "max": 0.2}}


def wait_until(condition: Callable[[], Any], what: str, deadline: float = DEADLINE) -> None:
    """Return when ``condition`` holds; fail with ``what`` once the deadline has passed."""
    never, end = threading.Event(), time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline:g} s: {what}")
        never.wait(LOOK_EVERY)


class Fleet:
    """The scheduler processes of one test, over the test's own database and directory."""

    def __init__(self, env: Mapping[str, str], directory: Path) -> None:
        self.directory = directory
        self.env = {**env, "HELISCHED_TEST_DIR": str(directory), "PYTHONUNBUFFERED": "1"}
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, **settings: Any) -> subprocess.Popen[str]:
        """Start one runscheduler with HELISCHED settings; its output goes to a file of its own."""
        log = self.log(len(self._started))
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "django", "runscheduler", *arguments],
                # No terminal, whoever starts the tests: a hang-up has another meaning with one.
                stdin=subprocess.DEVNULL,
                env={**self.env, "HELISCHED_TEST_SETTINGS": json.dumps({**QUICK, **settings})},
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=Path(__file__).parents[2],
            )
        self._started.append(process)
        return process

    def keep(self, count: int, *arguments: str, **settings: Any) -> None:
        """Start processes in the places of those that died, as a supervisor does."""
        alive = sum(process.poll() is None for process in self._started)
        for _ in range(count - alive):
            self.start(*arguments, **settings)

    def terminate(self) -> list[int]:
        """Ask all that still run to drain, and return their exit codes."""
        return [terminate(process) for process in self._started if process.poll() is None]

    def log(self, number: int) -> Path:
        return self.directory / f"scheduler-{number}.log"

    def has(self, name: str) -> bool:
        """Tell whether a body has touched the file ``name``."""
        return (self.directory / name).exists()

    def let_go(self, name: str = "go") -> None:
        """Let every body go on that waits for ``name``."""
        (self.directory / name).touch()

    def events(self, *whats: str) -> list[dict[str, Any]]:
        """Return the events of these names that processes started with ``--json-logs`` have told."""
        logged = [line for log in self.logs() for line in log.read_text().splitlines() if line.startswith("{")]
        told = [json.loads(line) for line in logged if line.endswith("}")]
        return [event for event in told if event["event"] in whats]

    def logs(self) -> list[Path]:
        return sorted(self.directory.glob("scheduler-*.log"))

    def lines(self) -> list[str]:
        """Return what the actions appended."""
        file = self.directory / "lines"
        return file.read_text().splitlines() if file.exists() else []

    def output(self) -> str:
        """Return what the processes printed, for a failing test to show."""
        return "\n".join(f"--- {log.name}\n{log.read_text()}" for log in self.logs())

    def stop(self) -> None:
        """Kill what still runs."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()


def kill(process: subprocess.Popen[str]) -> None:
    """End a process as a power cut would."""
    process.kill()
    process.wait()


def terminate(process: subprocess.Popen[str], deadline: float = DEADLINE) -> int:
    """Ask a process to drain and return its exit code."""
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=deadline)
