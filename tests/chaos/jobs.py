"""What the jobs of a chaos run do: leave one mark for each run, so that an audit can count."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from django_helisched import NonRetryable, RetryLater, action, current_job, mutation
from tests.app.models import Ledger
from tests.app.tasks import append

LINES = "runs"  # the file to which actions append

FATES = ("fine", "fine", "fine", "fine", "stumbles", "snoozes", "fails", "gives up")


class Stumbled(Exception):
    """What a body raises whose fate it is."""


@mutation
def enter(seconds: float, fate: str) -> int:
    """Write a row and enqueue a child, both named after this run."""
    job = current_job()
    Ledger.objects.create(marker=f"run {job.id} {job.attempt}")
    follow.enqueue(str(job.id), job.attempt)
    threading.Event().wait(seconds)
    meet(fate)
    return job.attempt


@mutation
def follow(parent: str, attempt: int) -> None:
    """Be the child of one run."""
    Ledger.objects.create(marker=f"child {parent} {attempt}")


@action
def tell(seconds: float, fate: str) -> int:
    """Append a line named after this run."""
    job = current_job()
    append(LINES, f"{job.id} {job.attempt}")
    job.progress(1, 2)
    threading.Event().wait(seconds)
    meet(fate)
    return job.attempt


@action
async def tell_async(seconds: float, fate: str) -> int:
    job = current_job()
    append(LINES, f"{job.id} {job.attempt}")
    await asyncio.sleep(seconds)
    meet(fate)
    return job.attempt


@action(at_most_once=True)
def tell_once(seconds: float, fate: str) -> int:
    """Append a line, never a second one."""
    del fate  # it has one run only
    job = current_job()
    append(LINES, f"{job.id} {job.attempt}")
    threading.Event().wait(seconds)
    return job.attempt


@mutation(max_failures=50)
def ended(job_id: str, context: Any, result: dict[str, Any]) -> None:
    """Be the on_complete of one end."""
    Ledger.objects.create(marker=f"end {job_id} {current_job().id} {result['kind']} {context}")


@mutation(max_failures=50)
def tick(name: str) -> None:
    """Stand for one occurrence."""
    Ledger.objects.create(marker=f"tick {name} {current_job().fire_at}")


def meet(fate: str) -> None:
    job = current_job()
    job.raise_if_canceled()
    if fate == "fails" or (fate == "stumbles" and job.attempt == 1):
        raise Stumbled(f"attempt {job.attempt}")
    if fate == "snoozes" and job.attempt == 1:
        raise RetryLater(0.2, count=False)
    if fate == "gives up":
        raise NonRetryable("it is hopeless")
