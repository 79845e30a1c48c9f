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

runs: list[str | int] = []


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


def _ask_the_driver() -> None:
    # Whatever Django does around a cursor stays out of this one.
    cursor = connection.connection.cursor()
    cursor.execute("SELECT 41 + 1")
    runs.append(cursor.fetchone()[0])


def _ask(sql: str, *params: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        runs.append(cursor.fetchone()[0])


def _ask_many() -> None:
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE helisched_cron SET name = %s WHERE name = %s", [("b", "a"), ("c", "b")])
        runs.append(42)


def _ask_in_a_block() -> None:
    with transaction.atomic():
        runs.append(42 + Ledger.objects.count())


def _ask_wrongly() -> None:
    with suppress(DatabaseError), transaction.atomic():
        _ask("SELECT nothing FROM nowhere")
    runs.append(42)


FIRST = {
    "a query": lambda: _ask("SELECT 40 + 2"),
    "a query with parameters": lambda: _ask("SELECT %s + %s", 41, 1),
    "a query with a percent sign": lambda: _ask("SELECT 142 % 100"),
    "a block": _ask_in_a_block,
    "an error": _ask_wrongly,
    "many": _ask_many,
    "rows by the chunk": lambda: runs.append(42 + len(list(Ledger.objects.iterator(1)))),
    "past Django": _ask_the_driver,
    "nothing": lambda: runs.append(42),
}


@mutation
def begin_by(first: str, marker: str) -> None:
    """Ask first what is named so, write a row, and fail where the marker says so."""
    FIRST[first]()
    Ledger.objects.create(marker=marker)
    runs.append(Ledger.objects.get().marker)
    if marker == "never":
        raise ValueError(marker)
