"""Settle one success: what every mutation does inside its own transaction."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from django.db import Error, connections

from django_helisched.jobs import payload
from django_helisched.jobs.follow_up import bounded
from django_helisched.models import Attempt, Job
from django_helisched.stores.base import SettleAnswer
from django_helisched.stores.orm.connection import is_missing_function
from django_helisched.stores.orm.last_statement import commit_with, quoted
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

# Of the migrations; it ends one attempt under its fence, or raises why it does not.
_FUNCTION = "helisched_end(uuid, bigint, integer, timestamptz, timestamptz, text, text, text)"
_REFUSAL = "ZH001"
_ANSWERS = {
    None: SettleAnswer.DONE,
    "cancel requested": SettleAnswer.CANCEL_REQUESTED,
    "claim lost": SettleAnswer.LOST,
}


def settle_success(connection: BaseDatabaseWrapper, settlement: Settlement, now: datetime) -> bool:
    """End one attempt that succeeded, with its Attempt row, and tell whether its claim held.

    On PostgreSQL this is one statement; elsewhere the caller has a transaction open.
    """
    single = _single(connection.alias, connection.vendor, str(connection.timezone))
    ended_at = single.time(now)
    key = single.key(settlement.claim.id)
    ending = [ended_at, key, settlement.claim.fence]
    attempt = [*single.attempt.adapt(attempt_values(settlement)), ended_at, settlement.claim.lease_holder]
    if single.is_one_statement:
        return changed(connection, single.both, [*ending, *attempt[1:]]) > 0
    if not any(changed(connection, end, ending) for end in single.ends):
        return False
    changed(connection, single.insert, attempt)
    return True


def settle_success_and_commit(connection: BaseDatabaseWrapper, settlement: Settlement, now: datetime) -> SettleAnswer:
    """Do as ``settle_success`` and commit in the same round trip; after another answer than DONE all is to be undone.

    Only where ``can_commit_with_last`` and ``has_function`` say so.
    """
    claim = settlement.claim
    statement = (
        f"SELECT helisched_end('{claim.id.hex}', {claim.fence:d}, {claim.attempt:d}, {_moment(settlement.started_at)}, "
        f"{_moment(now)}, {quoted(connection, claim.lease_holder)}, {_json(connection, settlement)}, "
        f"{quoted(connection, settlement.log)})"
    )
    try:
        return _ANSWERS[commit_with(connection, statement, refusal=_REFUSAL)]
    except Error as error:
        if is_missing_function(error):
            # Its migration was reversed while this process runs: whoever does it again looks again.
            _has_function.cache_clear()
        raise


def has_function(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether the function of the migrations can be called; tables that were made without them come without it."""
    return _has_function(connection.alias, str(connection.settings_dict["NAME"]))


@lru_cache(maxsize=8)
def _has_function(alias: str, _database: str) -> bool:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT has_function_privilege(to_regprocedure(%s), 'EXECUTE')", [_FUNCTION])
        return bool(cursor.fetchone()[0])


def _moment(moment: datetime | None) -> str:
    return "NULL" if moment is None else f"'{moment.isoformat()}'"


def _json(connection: BaseDatabaseWrapper, settlement: Settlement) -> str:
    result = bounded(settlement.outcome.result)
    return "NULL" if result is None else quoted(connection, payload.dumps(result))


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


@lru_cache(maxsize=8)
def _single(alias: str, _vendor: str, _timezone: str) -> _Single:
    return _Single(connections[alias])
