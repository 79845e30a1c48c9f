"""Delete old rows, a few at a time.

Each step reads one stretch of an index that exists anyway: (state, id) of jobs,
the primary key of all else. ``completed_at`` needs none, since ids grow with
time: see docs/decisions/0009-old-jobs-are-found-by-their-ids.md.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import Error, IntegrityError, connections, transaction
from django.db.models import Exists, F, OuterRef, Q

from django_helisched.crons.fires import is_behind
from django_helisched.jobs.ids import first_id
from django_helisched.jobs.job import JobSnapshot, State
from django_helisched.jobs.retention import Cut, Ties, is_free, is_spent
from django_helisched.models import Attempt, Batch, Cron, Fire, Job, JobArgs, Progress, Worker
from django_helisched.stores.base import Pruned
from django_helisched.stores.orm.connection import once_more
from django_helisched.stores.orm.rows import SNAPSHOT, columns, job_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Model, QuerySet

T = TypeVar("T")

_LIVE = [State.PENDING.value, State.IN_PROGRESS.value]
_BESIDE_A_JOB = (Attempt, JobArgs, Progress)


def surplus(alias: str, state: str, count: int) -> UUID | None:
    """Return the newest job after the ``count`` newest; see JobStore.surplus."""
    found = _of_state(connections[alias], state, ("id",), "ORDER BY id DESC LIMIT 1 OFFSET %s", [count])
    return found[0]["id"] if found else None


def _of_state(
    connection: BaseDatabaseWrapper, state: str, names: tuple[str, ...], rest: str, values: Sequence[Any]
) -> list[dict[str, Any]]:
    """Return columns of jobs in one state, by the index that has them in the order of their ids."""
    table = columns(Job, names, connection)
    # MySQL would rather filter the rows themselves, which lie in that order too: all others' rows among them.
    hint = "FORCE INDEX (helisched_job_state)" if connection.vendor == "mysql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {table.listed} FROM {table.table} {hint} WHERE state = %s {rest}", [state, *values])
        return [table.read(row) for row in cursor.fetchall()]


def prune(alias: str, cut: Cut, *, after: Any, limit: int, pretend: Collection[UUID] | None) -> Pruned:
    """Delete finished jobs of one state; see JobStore.prune."""
    looked = _look(connections[alias], cut, after, limit)
    reached = looked[-1].id if len(looked) == limit else None
    jobs = _free(alias, looked, cut, pretend or frozenset())
    if pretend is not None or not jobs:
        return Pruned(count=len(jobs), ids=frozenset(job.id for job in jobs), after=reached)
    deleted, refused = _one_by_one_if_need_be(alias, partial(_delete_jobs, alias, cut), jobs)
    return Pruned(count=len(deleted), ids=frozenset(deleted), refused=refused, after=reached)


def _look(connection: BaseDatabaseWrapper, cut: Cut, after: UUID | None, limit: int) -> list[JobSnapshot]:
    """Return the next ``limit`` jobs by id, from behind ``after`` up to the cut."""
    written = columns(Job, SNAPSHOT, connection).writer("id")
    ends = [written(cut.before)] if after is None else [written(cut.before), written(after)]
    behind = "" if after is None else "AND id > %s"
    rest = f"AND id < %s {behind} ORDER BY id LIMIT %s"
    return [JobSnapshot(**row) for row in _of_state(connection, cut.state.value, SNAPSHOT, rest, [*ends, limit])]


def _step(rows: QuerySet[Any], after: Any, limit: int) -> tuple[list[Any], Any]:
    """Return the next ``limit`` rows by primary key, and the last one's key unless the end was reached."""
    looked = list((rows if after is None else rows.filter(pk__gt=after)).order_by("pk")[:limit])
    return looked, looked[-1].pk if len(looked) == limit else None


def _free(alias: str, looked: Sequence[JobSnapshot], cut: Cut, gone: Collection[UUID]) -> list[JobSnapshot]:
    """Return the jobs that may go and that nobody needs; a parent that goes along, or is ``gone``, needs none."""
    jobs = [job for job in looked if is_spent(job, cut)]
    ids = [job.id for job in jobs]
    children = Job.objects.using(alias).filter(parent_id=OuterRef("pk"), state__in=_LIVE)
    above_live = _present(alias, Job, ids, Q(Exists(children)))
    parents = _present(alias, Job, {job.parent_id for job in jobs})
    open_batches = _present(alias, Batch, {job.batch_id for job in jobs}, Q(completed_at__isnull=True))
    free: list[JobSnapshot] = []
    going: set[UUID] = set()
    for job in jobs:
        ties = Ties(
            parent_is_there=job.parent_id in parents and job.parent_id not in going and job.parent_id not in gone,
            has_live_child=job.id in above_live,
            batch_is_open=job.batch_id in open_batches,
        )
        if is_free(ties):
            going.add(job.id)
            free.append(job)
    return free


def _present(alias: str, model: type[Model], keys: Collection[Any], which: Q | None = None) -> set[Any]:
    wanted = set(keys) - {None}
    if not wanted:
        return set()
    rows = model._default_manager.using(alias).filter(pk__in=wanted)
    return set((rows if which is None else rows.filter(which)).values_list("pk", flat=True))


def _one_by_one_if_need_be(
    alias: str, delete: Callable[[Sequence[T]], list[Any]], rows: Sequence[T]
) -> tuple[list[Any], int]:
    """Return the keys that ``delete`` answers, and how many rows the project did not let go."""
    try:
        return once_more(alias, partial(delete, rows)), 0
    except Exception as error:
        if not _is_refusal(error):
            raise
        if len(rows) == 1:
            return [], 1
    parts = [_one_by_one_if_need_be(alias, delete, [row]) for row in rows]
    return [key for keys, _ in parts for key in keys], sum(refused for _, refused in parts)


def _is_refusal(error: Exception) -> bool:
    """Tell whether the project does not let a row go: a foreign key, or a receiver of a signal that raised."""
    return isinstance(error, IntegrityError) or not isinstance(error, Error)


def _delete_jobs(alias: str, cut: Cut, jobs: Sequence[JobSnapshot]) -> list[UUID]:
    """Delete those of the jobs that nobody holds and that still may go; return their ids."""
    with transaction.atomic(using=alias):
        # Judged once more: since the look a job may have been requeued, or got a child.
        ids = [job.id for job in _free(alias, _locked(alias, jobs), cut, ())]
        for model in _BESIDE_A_JOB:
            model._default_manager.using(alias).filter(job_id__in=ids).delete()
        # Django's own: a model of the project's that points here says by on_delete what becomes of its rows.
        Job.objects.using(alias).filter(pk__in=ids).delete()
    return ids


def _locked(alias: str, jobs: Sequence[JobSnapshot]) -> list[JobSnapshot]:
    """Return the rows of jobs as they are now, locked against everybody, without those that others hold."""
    features = connections[alias].features
    every = Job.objects.using(alias).order_by("pk")
    rows = every.filter(pk__in=[job.id for job in jobs])
    if not features.has_select_for_update:
        # SQLite: a write first, since a read lock that has to grow fails at once.
        rows.update(fence=F("fence"))
        return [job_snapshot(row) for row in rows]
    # The strongest lock: a row of the project's own that is being inserted and points at the job holds it, too.
    skip_locked = features.has_select_for_update_skip_locked
    # This flag is true exactly where ON CONFLICT (column) DO NOTHING exists.
    if features.supports_update_conflicts_with_target:
        return [job_snapshot(row) for row in rows.select_for_update(skip_locked=skip_locked)]
    return _locked_by_key(every.select_for_update(skip_locked=skip_locked), jobs)


def _locked_by_key(every: QuerySet[Job], jobs: Sequence[JobSnapshot]) -> list[JobSnapshot]:
    """Lock the rows that hold keys by these, as an enqueue does that finds its key taken.

    MySQL locks the entry of an index and then the row; in the opposite order the
    two would deadlock, and the caller's transaction would be lost.
    """
    plain = [job.id for job in jobs if job.key_digest is None]
    rows = list(every.filter(pk__in=plain)) if plain else []
    for digest in [job.key_digest for job in jobs if job.key_digest is not None]:
        rows += every.filter(key_digest=digest)
    return sorted(map(job_snapshot, rows), key=lambda job: job.id)


def prune_workers(alias: str, seen_before: datetime, *, after: Any, limit: int, pretend: bool) -> Pruned:
    """Delete rows of workers; see JobStore.prune_workers."""
    looked, reached = _step(Worker.objects.using(alias).only("id", "last_seen"), after, limit)
    gone = [row.pk for row in looked if row.last_seen < seen_before]
    rows = Worker.objects.using(alias).filter(last_seen__lt=seen_before)
    return _deleted(alias, rows, gone, reached, pretend=pretend)


def prune_batches(alias: str, ended_before: datetime, *, after: Any, limit: int, pretend: bool) -> Pruned:
    """Delete batches that are over and empty; see JobStore.prune_batches."""
    made_before = Batch.objects.using(alias).filter(pk__lt=first_id(ended_before))
    looked, reached = _step(made_before.only("id", "completed_at"), after, limit)
    ended = [row.pk for row in looked if row.completed_at is not None and row.completed_at < ended_before]
    empty = ~Exists(Job.objects.using(alias).filter(batch_id=OuterRef("pk")))
    gone = sorted(_present(alias, Batch, ended, Q(empty)))
    rows = Batch.objects.using(alias).filter(empty, completed_at__lt=ended_before)
    return _deleted(alias, rows, gone, reached, pretend=pretend)


def prune_fires(alias: str, decided_before: datetime, *, after: Any, limit: int, pretend: bool) -> Pruned:
    """Delete what became of occurrences; see CronStore.prune_fires."""
    looked, reached = _step(Fire.objects.using(alias), after, limit)
    crons = Cron.objects.using(alias).filter(pk__in={row.cron_id for row in looked})
    next_run_at = dict(crons.values_list("pk", "next_run_at"))
    old = [row for row in looked if row.decided_at < decided_before]
    gone = [row.pk for row in old if is_behind(row.last_due_at, next_run_at.get(row.cron_id))]
    # Their numbers grow with time, so that nothing old comes behind a young one.
    reached = reached if looked and looked[-1] in old else None
    return _deleted(alias, Fire.objects.using(alias), gone, reached, pretend=pretend)


def _deleted(alias: str, rows: QuerySet[Any], keys: list[Any], reached: Any, *, pretend: bool) -> Pruned:
    """Delete those among ``rows`` that have one of the keys, and return the answer of the step."""
    if pretend or not keys:
        return Pruned(count=len(keys), after=reached)
    name = rows.model._meta.label

    def delete(some: Sequence[Any]) -> list[int]:
        with transaction.atomic(using=alias):
            return [rows.filter(pk__in=some).delete()[1].get(name, 0)]

    counts, refused = _one_by_one_if_need_be(alias, delete, keys)
    return Pruned(count=sum(counts), refused=refused, after=reached)
