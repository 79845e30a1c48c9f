"""Whoever does not begin with the write lock of SQLite waits for it all the same."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from django_helisched.models import Job
from django_helisched.stores.base import SettleAnswer, Settlement
from django_helisched.testing.contract.factories import START, enqueued, running, success

if TYPE_CHECKING:
    from django_helisched.stores.orm import OrmJobStore

HELD = 0.3  # seconds


@pytest.fixture
def deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin transactions as Django does by default, without any lock."""
    if connection.vendor == "sqlite":
        monkeypatch.setattr(connection, "transaction_mode", None)


def test_ends_that_are_written_together_wait_for_another_writer(store: OrmJobStore, deferred: None):
    claims = [running(store) for _ in range(4)]
    other = enqueued(store).id
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
    ends = [Settlement(claim=claim, outcome=success(), started_at=START) for claim in claims]
    assert set(store.settle(ends)) == {SettleAnswer.DONE}
    thread.join()
