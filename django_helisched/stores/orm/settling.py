"""Settle: end attempts under their fences."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction

from django_helisched.jobs.job import TERMINAL, State
from django_helisched.models import Job
from django_helisched.stores.base import SettleAnswer, Settlement
from django_helisched.stores.orm.batching import completing_batches, note_end
from django_helisched.stores.orm.ending import Ended, store_follow_ups, write_attempts, write_ending
from django_helisched.stores.orm.last_statement import can_commit_with_last
from django_helisched.stores.orm.locking import locked_jobs
from django_helisched.stores.orm.operating import cancel_descendants
from django_helisched.stores.orm.progress import write_reports
from django_helisched.stores.orm.single_success import has_function, settle_success, settle_success_and_commit
from django_helisched.stores.orm.successes import is_one_statement, is_plain, settle_successes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper


def settle(
    alias: str, settlements: Sequence[Settlement], *, new_id: Callable[[], UUID], now: datetime
) -> list[SettleAnswer]:
    """End attempts; see JobStore.settle."""
    newest = newest_of_each(settlements)
    if len(newest) < len(settlements):
        # A job that was lost and claimed again here, while its older body still ran.
        answers = settle(alias, newest, new_id=new_id, now=now)
        answer_of = dict(zip(map(id, newest), answers, strict=True))
        return [answer_of.get(id(item), SettleAnswer.LOST) for item in settlements]
    connection = connections[alias]
    if len(settlements) == 1 and _is_alone(settlements[0]):
        return [_settle_alone(connection, settlements[0], now)]
    with _joined(connection, settlements), completing_batches(alias, new_id=new_id, now=now):
        held = _write(connection, settlements, now)
        done = [item for item in settlements if item.claim.id.int in held]
        write_reports(alias, [(item.claim, item.progress) for item in done if item.progress is not None], now)
        store_follow_ups(alias, [item.follow_up for item in done if item.outcome.state in TERMINAL])
        for item in done:
            if item.outcome.state in TERMINAL:
                note_end(item.claim.batch_id)
        canceled = [item.claim.id for item in done if item.outcome.state is State.CANCELED]
        if canceled:
            cancel_descendants(alias, canceled, new_id=new_id, now=now)
        return [SettleAnswer.DONE if item.claim.id.int in held else _why_not(alias, item) for item in settlements]


def newest_of_each(settlements: Sequence[Settlement]) -> list[Settlement]:
    """Return of each job the settlement with the highest fence: only one claim of a job can hold."""
    newest: dict[int, Settlement] = {}
    for item in settlements:
        number = item.claim.id.int
        if newest.setdefault(number, item).claim.fence < item.claim.fence:
            newest[number] = item
    return list(newest.values())


def _joined(connection: BaseDatabaseWrapper, settlements: Sequence[Settlement]) -> AbstractContextManager[Any]:
    # One statement is atomic by itself.
    if is_one_statement(connection) and all(_is_alone(item) for item in settlements):
        return nullcontext()
    return transaction.atomic(using=connection.alias, savepoint=False)


def is_whole_end(connection: BaseDatabaseWrapper, settlement: Settlement) -> bool:
    """Tell whether ``settle_last`` can end this attempt: in an open transaction, with nothing beside it."""
    return connection.in_atomic_block and _is_alone(settlement)


def settle_last(connection: BaseDatabaseWrapper, settlement: Settlement, now: datetime) -> SettleAnswer:
    """End one attempt after which nothing follows in its transaction, which it may commit."""
    try:
        if can_commit_with_last(connection) and has_function(connection):
            return settle_success_and_commit(connection, settlement, now)
        return _answer(connection, settlement, now)
    except BaseException:
        # As an atomic() without a savepoint would, for a caller that goes on all the same.
        connection.needs_rollback = True
        raise


def _settle_alone(connection: BaseDatabaseWrapper, settlement: Settlement, now: datetime) -> SettleAnswer:
    if not (connection.in_atomic_block or is_one_statement(connection)):
        with transaction.atomic(using=connection.alias):
            return _answer(connection, settlement, now)
    try:
        return _answer(connection, settlement, now)
    except BaseException:
        # As above.
        connection.needs_rollback = connection.in_atomic_block
        raise


def _answer(connection: BaseDatabaseWrapper, settlement: Settlement, now: datetime) -> SettleAnswer:
    if settle_success(connection, settlement, now):
        return SettleAnswer.DONE
    return _why_not(connection.alias, settlement)


def _is_alone(settlement: Settlement) -> bool:
    """Tell whether nothing is written but the job and its attempt."""
    is_single = settlement.follow_up is None and settlement.claim.batch_id is None
    return is_single and is_plain(settlement.outcome) and settlement.progress is None


def _write(connection: BaseDatabaseWrapper, settlements: Sequence[Settlement], now: datetime) -> set[int]:
    """Write the rows and their attempts, and return the ids of the claims that held, as numbers."""
    plain, others = _parted(settlements)
    if plain and others:
        # By id, as everybody locks: each of the two parts below keeps that order for itself only.
        locked_jobs(connection.alias, [item.claim.id for item in settlements])
    held = settle_successes(connection, plain, now) if plain else set()
    ended = [
        item
        for item in sorted(others, key=lambda item: item.claim.id)
        if write_ending(connection, item.claim, item.outcome, now)
    ]
    write_attempts(connection, [_ended(item) for item in ended], now)
    return held | {item.claim.id.int for item in ended}


def _parted(settlements: Sequence[Settlement]) -> tuple[list[Settlement], list[Settlement]]:
    """Part those that succeeded from the others."""
    plain: list[Settlement] = []
    others: list[Settlement] = []
    for item in settlements:
        (plain if is_plain(item.outcome) else others).append(item)
    return plain, others


def _why_not(alias: str, settlement: Settlement) -> SettleAnswer:
    claim = settlement.claim
    still_ours = Job.objects.using(alias).filter(pk=claim.id, state=State.IN_PROGRESS.value, fence=claim.fence)
    return SettleAnswer.CANCEL_REQUESTED if still_ours.exists() else SettleAnswer.LOST


def _ended(settlement: Settlement) -> Ended:
    claim = settlement.claim
    return Ended(
        job_id=claim.id,
        number=claim.attempt,
        outcome=settlement.outcome,
        started_at=settlement.started_at,
        worker_id=claim.lease_holder,
        log=settlement.log,
    )
