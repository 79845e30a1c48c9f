"""The facade: enqueue, cancel and requeue jobs by function or by dotted path.

``fn_or_path`` is a registered function or its dotted path; ``args`` a dict of
keyword arguments, a list of positional ones, or None. A duration is a timedelta
or a number of seconds, an instant an aware datetime.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django_helisched import wiring
from django_helisched.context import in_batch
from django_helisched.exceptions import InvalidOption
from django_helisched.functions import JobFunction, JobOptions, resolve
from django_helisched.functions.call import Call, enqueue_calls, new_call
from django_helisched.functions.many import numbered
from django_helisched.functions.options import NO_OPTIONS, UNSET
from django_helisched.scheduler import queues
from django_helisched.scheduler.batches import batch, batch_counts, batch_id_of, close_batch, create_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from types import EllipsisType

    from django_helisched.functions.options import Duration
    from django_helisched.jobs.progress import ProgressSnapshot
    from django_helisched.models import Batch, Job
    from django_helisched.scheduler import crons

    FnOrPath = JobFunction[Any, Any] | str
    Arguments = Mapping[str, Any] | Sequence[Any] | None
    Entry = tuple[FnOrPath, Arguments] | tuple[FnOrPath, Arguments, Mapping[str, Any]]

__all__ = [
    "batch",
    "batch_counts",
    "cancel",
    "close_batch",
    "create_batch",
    "crons",
    "enqueue",
    "enqueue_many",
    "progress_of",
    "queues",
    "requeue",
    "run_after",
    "run_at",
]


def __getattr__(name: str) -> Any:
    if name == "crons":  # thirty modules, which a process that enqueues jobs does without
        return import_module("django_helisched.scheduler.crons")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_after(delay: Duration, fn_or_path: FnOrPath, args: Arguments = None) -> Job:
    """Store a job that is due ``delay`` from now; see ``enqueue``."""
    return enqueue(fn_or_path, args, run_after=delay)


def run_at(when: datetime, fn_or_path: FnOrPath, args: Arguments = None) -> Job:
    """Store a job that is due at ``when``; see ``enqueue``."""
    return enqueue(fn_or_path, args, run_at=when)


def enqueue(  # one keyword for each thing a job may be given
    fn_or_path: FnOrPath,
    args: Arguments = None,
    *,
    run_after: Duration | None = None,
    run_at: datetime | None = None,
    max_failures: int | None = None,
    name: str = "",
    on_complete: FnOrPath | None = None,
    context: Any = None,
    idempotency_key: str | None = None,
    queue: str | None = None,
    priority: int | None = None,
    space: str = "",
    expires_at: datetime | None = None,
    unique_until: str = "pruned",
    parent: Job | UUID | str | EllipsisType | None = UNSET,
    batch: Batch | UUID | str | EllipsisType | None = UNSET,
) -> Job:
    """Store a job in the caller's transaction and return it.

    ``run_at`` wins over ``run_after``; neither means now. A taken
    ``idempotency_key`` returns the older job, unchanged. ``on_complete`` is
    enqueued once when the job ends, with ``job_id``, ``context``, ``result``.
    Inside a job that job is the parent unless ``parent`` says otherwise, and inside a
    ``batch()`` block the job belongs to that batch unless ``batch`` does.
    Raises UnknownFunction, InvalidArguments or InvalidOption before anything is
    stored, LeaseLost where the running job is no longer this worker's, BatchClosed
    where the batch takes no more.
    """
    chosen = JobOptions(
        max_failures=max_failures,
        name=name,
        idempotency_key=idempotency_key,
        unique_until=unique_until,
        queue=queue,
        priority=priority,
        on_complete=on_complete,
        context=context,
        space=space,
        expires_at=expires_at,
        parent=parent,
        batch=batch,
    )
    return enqueue_calls([_call(fn_or_path, args, chosen, run_after=run_after, run_at=run_at)])[0]


def enqueue_many(entries: Iterable[Entry], *, batch: Batch | UUID | str | EllipsisType | None = UNSET) -> list[Job]:
    """Store many jobs by a few statements and return them in order: all of them, or none.

    An entry is ``(fn_or_path, args)`` or ``(fn_or_path, args, options)``, where
    options are the keywords of ``enqueue``. Every entry is checked before the
    first is stored; the error of a bad one says which it is. They belong to ``batch``
    where they name none themselves.
    """
    if batch is not UNSET:
        with in_batch(None if batch is None else batch_id_of(batch)):
            return enqueue_many(entries)
    return enqueue_calls(numbered(_call_of, entries))


def _call_of(entry: Entry) -> Call:
    if len(entry) == 2:
        return _call(*entry, NO_OPTIONS)
    fn_or_path, args, given = entry
    options = dict(given)
    times = {name: options.pop(name, None) for name in ("run_after", "run_at")}
    return _call(fn_or_path, args, JobOptions(**options), **times)


def _call(
    fn_or_path: FnOrPath,
    args: Arguments,
    chosen: JobOptions,
    *,
    run_after: Duration | None = None,
    run_at: datetime | None = None,
) -> Call:
    function = resolve(fn_or_path)
    given = None if chosen is NO_OPTIONS else chosen.given()
    if given:
        # A function that comes with options of its own keeps those that are not given here.
        function = function.using(**given)
    positional, named = split_arguments(args)
    return new_call(function, positional, named, run_after=run_after, run_at=run_at)


def split_arguments(args: Arguments) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return positional and keyword arguments: a dict is keywords, a list is positions, None is none."""
    if args is None:
        return (), {}
    if isinstance(args, list | tuple):
        return args, {}
    if isinstance(args, dict):
        return (), args
    raise TypeError(f"args={type(args).__name__} must be a dict of keyword arguments, a list, or None.")


def cancel(job_or_id: Job | UUID | str, force: bool = False) -> bool:  # noqa: FBT001, FBT002  # the public signature
    """Cancel a job and its descendants; True: something changed.

    A pending job is canceled at once, a running one asked to stop within a
    third of the lease; ``force`` ends it at once and voids its claim. A finished
    or unknown job gives False. Raises Busy after waiting 2 s for a lock.
    """
    return wiring.job_store().cancel(_id_of(job_or_id), force=force)


def requeue(job_or_id: Job | UUID | str) -> bool:
    """Put a finished job back to pending, due now; False: it is not finished, or its freed key is taken.

    Attempts restart at zero, history stays. Raises Busy after waiting 2 s for a lock.
    """
    done = wiring.job_store().requeue(_id_of(job_or_id))
    if done:
        wiring.wake_on_commit()
    return done


def progress_of(job_or_id: Job | UUID | str) -> ProgressSnapshot | None:
    """Return how far a job says it has come (``done``, ``total``, ``message``, ``updated_at``), or None.

    Of the run that goes on, or of the last one; at most about a second old.
    """
    return wiring.job_store().progress_of(_id_of(job_or_id))


def _id_of(job_or_id: Job | UUID | str) -> UUID:
    value = getattr(job_or_id, "id", job_or_id)
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        raise InvalidOption(f"{job_or_id!r} is neither a job nor a job's id, which is a UUID.") from None
