"""Store new jobs: one INSERT for the row, one for its arguments."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import Error, connections, transaction

from django_helisched.exceptions import LeaseLost
from django_helisched.jobs.job import Enqueued, State
from django_helisched.jobs.keys import digest_of
from django_helisched.models import Job
from django_helisched.stores.orm.batch_membership import keep_open
from django_helisched.stores.orm.connection import is_locked_file, is_missing_table
from django_helisched.stores.orm.insert_alike import insert_alike
from django_helisched.stores.orm.insert_statements import insert_job, insert_jobs, writes_together
from django_helisched.stores.orm.insert_usual import insert_usual
from django_helisched.stores.orm.migrated import not_migrated
from django_helisched.stores.orm.new_rows import new_payload, new_row
from django_helisched.stores.orm.rows import job_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.jobs.job import JobSnapshot, NewJob, Particulars

_TRIES = 3  # the job that has the key may be pruned between the two looks


def enqueue(alias: str, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Store ``jobs``; see JobStore.enqueue."""
    try:
        return _enqueue(alias, jobs)
    except Error as error:
        _explain(alias, error)
        raise


def enqueue_alike(alias: str, pattern: NewJob, each: Sequence[Particulars]) -> JobSnapshot:
    """Store jobs that are alike; see JobStore.enqueue_alike."""
    try:
        return _enqueue_alike(alias, pattern, each)
    except Error as error:
        _explain(alias, error)
        raise


def _explain(alias: str, error: Error) -> None:
    if is_missing_table(error):
        raise not_migrated(alias) from error
    if is_locked_file(error):
        error.add_note(
            "Another process held SQLite's only write lock for longer than this connection waits. Keep "
            "transactions short, set the OPTIONS that manage.py check prints, or use a server database. "
            "Nothing was enqueued."
        )


def _enqueue(alias: str, jobs: Sequence[NewJob]) -> list[Enqueued]:
    connection = connections[alias]
    if len(jobs) == 1 and jobs[0].parent_id is None and jobs[0].batch_id is None:
        (job,) = jobs
        usual = insert_usual(connection, job)
        if usual is not None:
            return [Enqueued(job=usual, created=True)]
        if _is_one_statement(connection, job):
            return [_store_one(connection, job, new_row(job))]
    canceled = _canceled_parents(alias, jobs)
    records = [(job, new_row(job, born_canceled=job.parent_id in canceled)) for job in jobs]
    with _joined(alias, jobs, is_one_statement=len(jobs) == 1 and _is_one_statement(connection, jobs[0])):
        if len(jobs) == 1 or any(job.idempotency_key is not None for job in jobs):
            return [_store_one(connection, job, record) for job, record in records]
        store_all(connection, records)
    return [Enqueued(job=record, created=True) for _, record in records]


def _enqueue_alike(alias: str, pattern: NewJob, each: Sequence[Particulars]) -> JobSnapshot:
    connection = connections[alias]
    record = new_row(pattern, born_canceled=pattern.parent_id in _canceled_parents(alias, [pattern]))
    with _joined(alias, [pattern], is_one_statement=writes_together(connection)):
        insert_alike(connection, record, new_payload(pattern), each)
    return record


def store_all(connection: BaseDatabaseWrapper, records: Sequence[tuple[NewJob, JobSnapshot]]) -> None:
    """Insert many jobs without keys by statements of many rows."""
    insert_jobs(connection, [(record, new_payload(job)) for job, record in records])


@contextmanager
def _joined(alias: str, jobs: Sequence[NewJob], *, is_one_statement: bool) -> Iterator[None]:
    """Store ``jobs`` in the block: in one transaction, in which their batches take them."""
    batched = [job for job in jobs if job.batch_id is not None]
    if is_one_statement and not batched:
        yield  # it is atomic by itself
        return
    is_joining = connections[alias].in_atomic_block
    if batched and is_joining:
        keep_open(alias, batched)  # a refusal must leave the caller's transaction usable
    with transaction.atomic(using=alias, savepoint=False):
        if batched and not is_joining:
            keep_open(alias, batched)
        yield


def _is_one_statement(connection: BaseDatabaseWrapper, job: NewJob) -> bool:
    return writes_together(connection) or (not job.has_args and job.idempotency_key is None)


def _canceled_parents(alias: str, jobs: Sequence[NewJob]) -> set[UUID | None]:
    """Return the parents whose children are born canceled; raise LeaseLost for a stale fence.

    A plain read, no lock: a cancel that commits meanwhile is caught when the
    parent settles.
    """
    parents = {job.parent_id for job in jobs if job.parent_id is not None}
    if not parents:
        return set()
    rows = Job.objects.using(alias).filter(pk__in=parents)
    found = {row[0]: row[1:] for row in rows.values_list("id", "state", "fence", "cancel_requested_at")}
    held = {(job_id, fence) for job_id, (state, fence, _) in found.items() if state == State.IN_PROGRESS}
    for job in jobs:
        if job.parent_fence is not None and (job.parent_id, job.parent_fence) not in held:
            raise LeaseLost(
                f"job {job.parent_id} is no longer this worker's, so it cannot enqueue {job.fn_path}. "
                "Nothing was enqueued."
            )
    return {job_id for job_id, (state, _, asked_at) in found.items() if state == State.CANCELED or asked_at is not None}


def _store_one(connection: BaseDatabaseWrapper, job: NewJob, record: JobSnapshot) -> Enqueued:
    if job.idempotency_key is not None and record.key_digest is None:
        older = _by_key(connection, digest_of(job.space, job.idempotency_key), lock=False)
        if older is not None:
            return Enqueued(job=older, created=False)
    older = _insert_or_find(connection, job, record)
    return Enqueued(job=record, created=True) if older is None else Enqueued(job=older, created=False)


def _insert_or_find(connection: BaseDatabaseWrapper, job: NewJob, record: JobSnapshot) -> JobSnapshot | None:
    """Insert a job and return None, or return the job that has its key."""
    payload = new_payload(job)
    for _ in range(_TRIES):
        if insert_job(connection, record, payload):
            return None
        older = _taken(connection, digest_of(job.space, str(job.idempotency_key)))
        if older is not None:
            return older
    raise LookupError("the job that held this idempotency key was deleted this instant, again and again")


def _taken(connection: BaseDatabaseWrapper, digest: str) -> JobSnapshot | None:
    # The other's row is committed, but a snapshot of this transaction may be older: a locking read sees it.
    return _by_key(connection, digest, lock=not connection.features.supports_update_conflicts_with_target)


def _by_key(connection: BaseDatabaseWrapper, digest: str, *, lock: bool) -> JobSnapshot | None:
    rows = Job.objects.using(connection.alias).filter(key_digest=digest)
    row = (rows.select_for_update() if lock else rows).first()
    return None if row is None else job_snapshot(row)
