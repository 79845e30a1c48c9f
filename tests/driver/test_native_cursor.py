"""A claim that goes past Django's cursor is seen by whoever watches, and fails as Django fails."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_helisched.stores.orm import OrmJobStore
from django_helisched.stores.orm.clock import database_clock
from django_helisched.stores.orm.native import fetched

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.only_on("postgresql", why="only there Django's cursor is passed by"),
]

LEASE = timedelta(seconds=30)


def claim() -> None:
    OrmJobStore("default", database_clock("default")).claim(worker_id="me", limit=1, lease=LEASE)


def test_whoever_watches_sees_the_claim():
    seen: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        claim()
    with CaptureQueriesContext(connection) as captured:
        claim()
    assert [sql for sql in seen if "UPDATE" in sql]
    assert [query for query in captured if "UPDATE" in query["sql"]]


def test_unwatched_and_outside_of_a_transaction_it_needs_no_cursor_of_django(monkeypatch: pytest.MonkeyPatch):
    connection.ensure_connection()
    made: list[object] = []
    monkeypatch.setattr(connection, "cursor", lambda: made.append(None))
    assert fetched(connection, "SELECT %s::int, 'a'", [1]) == [(1, "a")]
    assert made == []


def test_in_a_transaction_and_on_a_closed_connection_it_is_djangos():
    with transaction.atomic():
        assert fetched(connection, "SELECT %s::int", [1]) == [(1,)]
    connection.close()
    assert fetched(connection, "SELECT %s::int", [1]) == [(1,)]


def test_an_error_is_djangos_and_the_connection_is_asked_before_it_is_used_again():
    connection.ensure_connection()
    with pytest.raises(ProgrammingError):
        fetched(connection, "SELECT nothing FROM nowhere", [])
    assert connection.errors_occurred
    assert fetched(connection, "SELECT 1", []) == [(1,)]
