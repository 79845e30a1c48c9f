"""Whoever does not begin with the write lock of SQLite waits for it all the same."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from django_helisched.models import Job
from django_helisched.stores.base import SettleAnswer, Settlement
from django_helisched.testing.contract.factories import START, claimed, enqueued, only, running, success

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django_helisched.stores.orm import OrmJobStore

HELD = 0.3  # seconds


@pytest.fixture
def deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin transactions as Django does by default, without any lock."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        monkeypatch.setattr(connection, "transaction_mode", None)


def test_ends_that_are_written_together_wait_for_another_writer(store: OrmJobStore, deferred: None):
    claims = [running(store) for _ in range(4)]
    ends = [Settlement(claim=claim, outcome=success(), started_at=START) for claim in claims]
    with another_writer(enqueued(store).id):
        assert set(store.settle(ends)) == {SettleAnswer.DONE}


def test_a_claim_waits_for_another_writer(store: OrmJobStore, deferred: None):
    enqueued(store)
    paused = enqueued(store, queue="other").id
    with another_writer(paused):
        assert claimed(store, queues=only("default")).fence == 1


@contextmanager
def another_writer(other: UUID) -> Iterator[None]:
    """Let another thread hold the write lock as the block begins, and commit a little later."""
    writes = threading.Event()

    def write() -> None:
        try:
            with transaction.atomic():
                Job.objects.filter(pk=other).update(name="other")
                writes.set()
                threading.Event().wait(HELD)
        finally:
            connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    assert writes.wait(20)
    yield
    thread.join()
