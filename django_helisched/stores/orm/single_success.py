"""Settle one success: what every mutation does inside its own transaction."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_helisched.models import Attempt, Job
from django_helisched.stores.orm.last_statement import commit_with
from django_helisched.stores.orm.native import changed
from django_helisched.stores.orm.rows import columns
from django_helisched.stores.orm.success_rows import (
    ALIKE,
    ATTEMPT,
    CHANGES,
    INTO,
    KEYLESS_CHANGES,
    OURS,
    attempt_values,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.base import Settlement


def settle_success(connection: BaseDatabaseWrapper, settlement: Settlement, now: datetime) -> bool:
    """End one attempt that succeeded, with its Attempt row, and tell whether its claim held.

    On PostgreSQL this is one statement; elsewhere the caller has a transaction open.
    """
    single = _single(connection.alias, connection.vendor, str(connection.timezone))
    if single.is_one_statement:
        return changed(connection, single.both, _one_statement(single, settlement, now)) > 0
    ended_at = single.time(now)
    key = single.key(settlement.claim.id)
    ending = [ended_at, key, settlement.claim.fence]
    attempt = [*single.attempt.adapt(attempt_values(settlement)), ended_at, settlement.claim.lease_holder]
    if not any(changed(connection, end, ending) for end in single.ends):
        return False
    changed(connection, single.insert, attempt)
    return True


def settle_success_and_commit(connection: BaseDatabaseWrapper, settlement: Settlement, now: datetime) -> bool:
    """Do as ``settle_success`` and commit in the same round trip; where the claim is lost the transaction goes on.

    Only where ``can_commit_with_last`` says so.
    """
    single = _single(connection.alias, connection.vendor, str(connection.timezone))
    fence = Attempt._meta.db_table, "job_id"
    return commit_with(connection, single.last, _one_statement(single, settlement, now), must_exist=fence)


def _one_statement(single: _Single, settlement: Settlement, now: datetime) -> list[Any]:
    ended_at, key, claim = single.time(now), single.key(settlement.claim.id), settlement.claim
    attempt = single.attempt.adapt(attempt_values(settlement))
    return [ended_at, key, claim.fence, *attempt[1:], ended_at, claim.lease_holder]


class _Single:
    """The statements for one row on one kind of connection."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        job = columns(Job, ("id", "completed_at"), connection)
        self.attempt = columns(Attempt, ATTEMPT, connection)
        self.key, self.time = job.writer("id"), job.writer("completed_at")
        self.is_one_statement = connection.vendor == "postgresql"
        which = f"WHERE id = %s AND fence = %s AND {OURS}"
        end = f"UPDATE {job.table} SET {CHANGES} {which}"
        # Of each column that it assigns SQLite writes the index anew, also where the value stays.
        keyless = f"UPDATE {job.table} SET {KEYLESS_CHANGES} {which} AND key_digest IS NULL"
        self.ends = [keyless, end] if connection.vendor == "sqlite" else [end]
        self.insert = f"INSERT INTO {self.attempt.table} {INTO} VALUES (%s, %s, %s, %s, %s, {ALIKE})"
        self.both = (
            f"WITH ended AS ({end} RETURNING id) INSERT INTO {self.attempt.table} {INTO} "
            f"SELECT id, %s, %s::timestamptz, %s, %s, {ALIKE} FROM ended"
        )
        # Without a row of ours there is no job_id, which the table refuses: what follows is not carried out.
        self.last = (
            f"WITH ended AS ({end} RETURNING id) INSERT INTO {self.attempt.table} {INTO} "
            f"VALUES ((SELECT id FROM ended), %s, %s, %s, %s, {ALIKE})"
        )


@lru_cache(maxsize=8)
def _single(alias: str, _vendor: str, _timezone: str) -> _Single:
    return _Single(connections[alias])
