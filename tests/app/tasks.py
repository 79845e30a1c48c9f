"""Bodies that a test drives from another process, by files in HELISCHED_TEST_DIR."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import threading
from pathlib import Path
from typing import Any

from django_helisched import action, current_job, mutation
from django_helisched.exceptions import LeaseLost
from tests.app.models import Ledger

LOOK_EVERY = 0.02  # seconds between two looks for a file


def place(name: str) -> Path:
    return Path(os.environ["HELISCHED_TEST_DIR"]) / name


def wait_for(name: str) -> None:
    never = threading.Event()
    while not place(name).exists():
        never.wait(LOOK_EVERY)


def append(name: str, line: str) -> None:
    """Append a line in one write, so that processes cannot mix theirs."""
    with place(name).open("a") as file:
        file.write(line + "\n")


@mutation
def record(marker: str) -> str:
    """Write one row."""
    Ledger.objects.create(marker=marker)
    return marker


@mutation
def record_and_wait(marker: str) -> None:
    """Write one row; on the first attempt, wait in the middle of the transaction."""
    Ledger.objects.create(marker=marker)
    place(f"{marker}.{current_job().attempt}").touch()
    if current_job().attempt == 1:
        wait_for("go")


@mutation
def record_and_hold(marker: str) -> None:
    """Write one row, and hold the lock of that write until the test lets go, whatever the attempt."""
    Ledger.objects.create(marker=marker)
    place(marker).touch()
    wait_for(f"{marker}.go")


@action
def append_and_wait(marker: str) -> None:
    """Append a line to a file; on the first attempt, wait after it."""
    append("lines", f"{marker} {current_job().attempt}")
    place(f"{marker}.{current_job().attempt}").touch()
    if current_job().attempt == 1:
        wait_for("go")


class Tattletale(dict[str, Any]):
    """A result that touches a file when the driver looks at it: the body has ended by then."""

    def items(self) -> Any:
        place("ended").touch()
        return super().items()


@action
def append_and_end(marker: str) -> dict[str, Any]:
    """Append a line to a file once the test lets go, and end."""
    place(f"{marker}.{current_job().attempt}").touch()
    wait_for("go")
    append("lines", f"{marker} {current_job().attempt}")
    return Tattletale(marker=marker)


@action(at_most_once=True)
def append_once_and_wait(marker: str) -> None:
    """Do as append_and_wait, but never twice."""
    append("lines", f"{marker} {current_job().attempt}")
    place(f"{marker}.{current_job().attempt}").touch()
    wait_for("go")


@action
def append_and_hold(marker: str) -> None:
    """Append a line to a file, and wait after it, whatever the attempt."""
    append("lines", f"{marker} {current_job().attempt}")
    place(f"{marker}.{current_job().attempt}").touch()
    wait_for("go")


@action
def report_and_spawn(marker: str) -> None:
    """On the first attempt wait; then report progress, enqueue a child, say how that went, and wait once more."""
    job = current_job()
    place(f"{marker}.{job.attempt}").touch()
    if job.attempt == 1:
        wait_for("go")
    job.progress(job.attempt, 2)
    try:
        record.enqueue(f"child of attempt {job.attempt}")
        append("lines", f"{job.attempt} enqueued")
    except LeaseLost:
        append("lines", f"{job.attempt} refused")
    wait_for(f"{marker}.{job.attempt}.end")


@action
def be_late(marker: str, how: str) -> None:
    """Append a line, and outlast the lease of the first attempt."""
    append("lines", f"{marker} {current_job().attempt}")
    outlast(marker, how)


@mutation
def write_late(marker: str, how: str) -> None:
    """Write a row, and outlast the lease of the first attempt."""
    Ledger.objects.create(marker=marker)
    outlast(marker, how)


def outlast(marker: str, how: str) -> None:
    attempt = current_job().attempt
    place(f"{marker}.{attempt}").touch()
    if attempt == 1 and how == "holds the GIL":
        with place("gil").open("w") as file:
            # PyDLL keeps the interpreter's lock: no thread of the process runs until the test lets the file go.
            ctypes.PyDLL(None).flock(file.fileno(), fcntl.LOCK_EX)
    elif attempt == 1:
        wait_for("go")


@action
def kill_its_process(marker: str) -> None:
    place(f"{marker}.{current_job().attempt}").touch()
    os.kill(os.getpid(), signal.SIGKILL)


@mutation
def closed(job_id: str, context: Any, result: dict[str, Any]) -> None:
    """Be an on_complete: write how the job ended."""
    Ledger.objects.create(marker=f"{context} {result['kind']}")


@mutation
def tick() -> None:
    """Write the occurrence that this run stands for."""
    fire_at = current_job().fire_at
    Ledger.objects.create(marker=f"tick {fire_at}")


@action
def return_an_object() -> Any:
    return object()


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


@action(max_failures=1)
def raise_unprintable() -> None:
    raise Unprintable


@action(max_failures=1)
def raise_with_nul() -> None:
    raise ValueError("a NUL \x00 and a surrogate \udcff")


@action
async def wait_until_canceled() -> None:
    place("waiting").touch()
    await asyncio.Event().wait()


@mutation(timeout=0.2)
def write_and_stand_still(marker: str) -> None:
    """Write one row; on the first attempt, wait for ever inside one call that no exception reaches."""
    Ledger.objects.create(marker=marker)
    if current_job().attempt == 1:
        threading.Event().wait()
