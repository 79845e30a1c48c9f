"""The child processes of the demo: started apart from its terminal, watched, and stopped in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

MANAGE = Path(__file__).resolve().parent / "manage.py"
# How long a scheduler may finish its jobs after the first and after the second request.
DRAIN_SECONDS, HURRY_SECONDS = 20.0, 5.0
GLANCE = 0.1


@dataclass(frozen=True, slots=True)
class Child:
    """One running process."""

    role: str
    process: subprocess.Popen[bytes]

    @property
    def alive(self) -> bool:
        """Say whether it still runs."""
        return self.process.poll() is None

    @property
    def ending(self) -> str:
        """Say how it ended: its exit code, or the signal that killed it."""
        code = self.process.returncode
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def start(role: str, arguments: Sequence[str], *, quiet: bool = False) -> Child:
    """Start ``manage.py`` with the arguments; a quiet child may only complain.

    A process group of its own keeps a Ctrl-C at the terminal from the child: it
    is asked to stop once, by the demo, and not twice.
    """
    group = 0 if os.name == "posix" else None
    command = [sys.executable, str(MANAGE), *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if quiet else None,
        env=environment,
        process_group=group,
    )
    return Child(role, process)


def wait(seconds: float) -> None:
    """Pause, open to signals."""
    Event().wait(seconds)


def stop(crew: Sequence[Child], hurried: Callable[[], bool]) -> None:
    """Ask all to stop and wait; ask again after DRAIN_SECONDS or a second Ctrl-C; then kill."""
    for child in crew:
        if child.alive:
            child.process.terminate()
    if _all_gone(crew, DRAIN_SECONDS, hurried):
        return
    for child in _alive(crew):
        print(f"demo: the {child.role} is still busy; asking again.", flush=True)
        child.process.terminate()
    if _all_gone(crew, HURRY_SECONDS, lambda: False):
        return
    for child in _alive(crew):
        print(f"demo: the {child.role} does not stop; killing it. Another scheduler would take its jobs.", flush=True)
        child.process.kill()
        child.process.wait()


def _alive(crew: Sequence[Child]) -> list[Child]:
    return [child for child in crew if child.alive]


def _all_gone(crew: Sequence[Child], seconds: float, hurried: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while _alive(crew):
        if time.monotonic() > deadline or hurried():
            return False
        wait(GLANCE)
    return True
