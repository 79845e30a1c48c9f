"""Bodies of jobs that stop where a test can act."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from django_helisched import action, current_job, mutation
from django_helisched.models import Job
from tests.app.jobs import note, tell
from tests.app.models import Ledger, Receipt
from tests.races.stage import pause

runs: list[str] = []


@mutation
def write_and_enqueue(marker: str) -> None:
    """Write a row and enqueue a child, and stop before the end."""
    Ledger.objects.create(marker=marker)
    note.enqueue(marker)
    pause()


@action
def stop_and_enqueue(marker: str) -> None:
    """Stop, and then enqueue a child."""
    pause()
    runs.append(tell.enqueue(marker).state)


@mutation
def write_receipt(marker: str) -> None:
    """Write rows of the project's own, one of which points at this very job, enqueue a child, and stop."""
    Ledger.objects.create(marker=marker)
    Receipt.objects.create(job_id=current_job().id)
    note.enqueue(marker)
    pause()


def cross_rows(one: int, other: int, mark: str) -> None:
    runs.append(mark)
    Ledger.objects.create(marker=f"{mark} begins")
    # A read that locks: Django itself marks a transaction as broken only where a write fails.
    Ledger.objects.select_for_update().get(pk=one)
    pause()
    Ledger.objects.select_for_update().get(pk=other)


@mutation
def cross(one: int, other: int, mark: str) -> None:
    """Lock one row, stop, lock the other."""
    cross_rows(one, other, mark)
    Ledger.objects.create(marker=f"{mark} ends")


@mutation
def cross_and_catch(one: int, other: int, mark: str) -> None:
    """Do the same, and go on whatever the database says."""
    with suppress(DatabaseError):
        cross_rows(one, other, mark)
    Ledger.objects.create(marker=f"{mark} ends")


def can_isolate() -> bool:
    """Tell whether a transaction that has begun may still ask for more isolation."""
    return connection.features.has_select_for_no_key_update


@mutation
def count_up(row: int) -> None:
    """Read a number, stop, and write the next one."""
    runs.append("count")
    if can_isolate():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    number = int(Ledger.objects.get(pk=row).marker)
    pause()
    Ledger.objects.filter(pk=row).update(marker=str(number + 1))


@mutation
def write_with_hook(marker: str) -> None:
    """Write a row, and note the commit."""
    transaction.on_commit(lambda: runs.append("committed"))
    Ledger.objects.create(marker=marker)


@mutation
def write_and_lose(marker: str) -> None:
    """Write a row under a claim that is not the newest any more."""
    write_with_hook(marker)
    Job.objects.filter(pk=current_job().id).update(fence=F("fence") + 1)


@mutation
def write_and_be_canceled(marker: str) -> None:
    """Write a row of a job that is to be canceled."""
    write_with_hook(marker)
    Job.objects.filter(pk=current_job().id).update(cancel_requested_at=Now())


@mutation
def write_a_receipt_of_nothing(marker: str) -> None:
    """Write a row, and another one that the database refuses at the commit."""
    write_with_hook(marker)
    Receipt.objects.create(job_id=uuid4())
