"""current_job(): what a body may know and ask of the job it runs for."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django_helisched.exceptions import HelischedError, JobCanceled, JobEnded
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.progress import storable_report
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from uuid import UUID

    from django_helisched.jobs.job_log import JobLog
    from django_helisched.jobs.progress import ProgressReport

_current: ContextVar[JobContext | None] = ContextVar("helisched_job", default=None)
_batch: ContextVar[UUID | None] = ContextVar("helisched_batch", default=None)


@dataclass(slots=True)
class Control:
    """What the driver tells a running body, and what the body reports back. Safe in threads."""

    cancel_requested: bool = False
    lease_at_risk: bool = False
    lease_lost: bool = False
    ended: bool = False
    deadline: float | None = None  # on the clock of stores.clock.elapsed()
    progress: ProgressReport | None = None  # the newest report
    reported: Callable[[], object] | None = None  # to be called after a report, from any thread
    log: JobLog | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The running job, from inside.

    ``attempt`` counts 1, 2, ... and never restarts. ``fire_at`` is the
    occurrence a cron job stands for (aware, UTC); ``missed`` how many
    occurrences were missed just before it, the first at ``first_missed_at``.
    ``batch`` is its batch: ``fn.using(batch=current_job().batch)`` lets it grow.
    """

    id: UUID
    fence: int | None = None
    fn_path: str = ""
    attempt: int = 1
    space: str = ""
    batch: UUID | None = None
    fire_at: datetime | None = None
    missed: int = 0
    first_missed_at: datetime | None = None
    control: Control = field(default_factory=Control, repr=False, compare=False)

    @property
    def cancel_requested(self) -> bool:
        """Tell whether somebody asked this job to stop, or its lease is lost."""
        return self._live().cancel_requested or self.control.lease_lost

    @property
    def lease_at_risk(self) -> bool:
        """Tell whether heartbeats fail, so that another worker may soon take the job."""
        return self._live().lease_at_risk

    def raise_if_canceled(self) -> None:
        """Raise JobCanceled if the job was asked to stop: a good place to leave from."""
        if self.cancel_requested:
            raise JobCanceled(f"job {self.id} was asked to stop")

    def remaining(self) -> timedelta | None:
        """Return the time left before the timeout, zero or more; None without a timeout."""
        deadline = self._live().deadline
        return None if deadline is None else timedelta(seconds=max(0.0, deadline - elapsed()))

    def progress(self, done: int, total: int | None = None, message: str = "") -> None:
        """Report how far the job has come.

        As often as you like: the newest report is stored about once a second,
        and the last one with the job's end.
        """
        control = self._live()
        control.progress = storable_report(int(done), None if total is None else int(total), str(message))
        if control.reported is not None:
            control.reported()

    def _live(self) -> Control:
        if self.control.ended:
            raise JobEnded(
                f"job {self.id} has ended; its context cannot be used any more. "
                "Code that outlives the job must not hold on to current_job()."
            )
        return self.control


def current_job() -> JobContext:
    """Return the context of the job that is running here.

    It flows into awaited code, tasks and ``asyncio.to_thread``; other threads
    need ``contextvars.copy_context().run``. Raises HelischedError outside a job.
    """
    found = _current.get()
    if found is None:
        raise HelischedError("current_job() was called outside a job; only a running function has one.")
    return found


def here() -> JobContext | None:
    """Return the context of the job that runs here, ended or not, or None."""
    return _current.get()


def running() -> JobContext | None:
    """Return the context that makes an enqueue a child: a stored job's, still running; else None.

    Raises JobEnded where the surrounding job has ended.
    """
    found = _current.get()
    if found is None or found.fence is None:
        return None
    if found.control.ended:
        raise JobEnded(
            f"job {found.id} has ended, so it cannot enqueue any more. Enqueue before the function returns, "
            "or pass parent=None from code that outlives it."
        )
    return found


class entered:  # noqa: N801  # read as the verb of a with statement; a generator costs a short job twice as much
    """Make ``context`` the current job inside the block, and an ended one after it."""

    __slots__ = ("_batch", "_context", "_current")

    def __init__(self, context: JobContext) -> None:
        self._context = context

    def __enter__(self) -> JobContext:
        self._current, self._batch = _current.set(self._context), _batch.set(None)
        return self._context

    def __exit__(self, *_: object) -> None:
        self._context.control.ended = True
        _batch.reset(self._batch)
        _current.reset(self._current)


def open_batch() -> UUID | None:
    """Return the batch that everything enqueued here belongs to."""
    return _batch.get()


@contextmanager
def in_batch(batch_id: UUID | None) -> Iterator[None]:
    """Let everything enqueued inside the block belong to a batch."""
    token = _batch.set(batch_id)
    try:
        yield
    finally:
        _batch.reset(token)


@contextmanager
def inline(fn_path: str) -> Iterator[JobContext]:
    """Give a plain call a context of its own, unless a job is running around it already."""
    found = _current.get()
    if found is not None:
        yield found
        return
    with entered(JobContext(id=uuid7(), fn_path=fn_path)) as context:
        yield context
