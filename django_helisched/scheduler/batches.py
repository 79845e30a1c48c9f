"""Batches: a set of jobs, and one job that runs when all of them have ended."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django_helisched import context, wiring
from django_helisched.exceptions import InvalidArguments, InvalidOption
from django_helisched.functions import options as checks
from django_helisched.functions.call import NAME_LENGTH, resolve_callback
from django_helisched.jobs import payload
from django_helisched.jobs.batch import NewBatch
from django_helisched.jobs.ids import uuid7
from django_helisched.models import Batch
from django_helisched.models.job import SPACE_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_helisched.functions import JobFunction

__all__ = ["batch", "batch_counts", "close_batch", "create_batch"]


@contextmanager
def batch(
    name: str = "",
    *,
    on_complete: JobFunction[Any, Any] | str | None = None,
    context: Any = None,
    space: str = "",
) -> Iterator[Batch]:
    """Open a batch for the jobs that are enqueued inside the block, and close it at its end.

    The block is one transaction: the batch and its jobs exist exactly if it ends without an
    exception. See ``create_batch``.
    """
    with wiring.job_store().atomic():
        made = create_batch(name, on_complete=on_complete, context=context, space=space)
        with _in_batch(made.id):
            yield made
        close_batch(made)


def create_batch(
    name: str = "",
    *,
    on_complete: JobFunction[Any, Any] | str | None = None,
    context: Any = None,
    space: str = "",
) -> Batch:
    """Store a batch that takes jobs (``fn.using(batch=...)``) until it is closed, and return it.

    ``on_complete`` is enqueued once, when it is closed and its last job has ended, with
    ``batch_id``, ``context`` and ``counts``: ``{"success": 2, "failed": 1, "canceled": 0}``.
    Raises UnknownFunction, InvalidArguments or InvalidOption before anything is stored.
    """
    store = wiring.job_store()
    path, resolved = resolve_callback(on_complete, {"batch_id": "", "context": None, "counts": {}})
    try:
        context = payload.canonical(context, "context")
    except payload.NotJson as error:
        raise InvalidArguments(f"batch(): {error}. Nothing was stored.") from None
    new = NewBatch(
        id=uuid7(),
        created_at=store.now(),
        name=checks.check_text(name, "name", NAME_LENGTH),
        space=checks.check_text(space, "space", SPACE_LENGTH),
        on_complete=path,
        context=context,
        options=resolved,
    )
    return Batch.from_snapshot(store.create_batch(new))


def close_batch(batch_or_id: Batch | UUID | str) -> bool:
    """Take no more jobs but from running ones of the batch; False: it is closed already, or not there.

    An empty batch is complete at once. Raises Busy after waiting 2 s for a lock.
    """
    closed = wiring.job_store().close_batch(batch_id_of(batch_or_id))
    if closed:
        wiring.wake_on_commit()
    return closed


def batch_counts(batch_or_id: Batch | UUID | str) -> dict[str, int] | None:
    """Return how many jobs of a batch are ``open`` and how many ended ``success``, ``failed`` and ``canceled``.

    None where it is not there. They stand still once it is complete.
    """
    found = wiring.job_store().get_batch(batch_id_of(batch_or_id))
    if found is None:
        return None
    return {"open": found.open, "success": found.succeeded, "failed": found.failed, "canceled": found.canceled}


_in_batch = context.in_batch  # the parameter of that name hides the module


def batch_id_of(batch_or_id: Any) -> UUID:
    """Return the id of a batch or of its id's text; raise InvalidOption otherwise."""
    value = getattr(batch_or_id, "id", batch_or_id)
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        raise InvalidOption(f"{batch_or_id!r} is neither a batch nor a batch's id, which is a UUID.") from None
