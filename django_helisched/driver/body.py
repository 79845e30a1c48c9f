"""Run the body of one job, and tell how it ended; nothing it does gets past here."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import nullcontext
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync

from django_helisched.context import JobContext, entered
from django_helisched.driver.deadline import Guard, OutOfTime, Stop, is_stop
from django_helisched.driver.endings import ending_of_error, ending_of_timeout, ending_of_value
from django_helisched.exceptions import JobCanceled, NonRetryable, RetryLater
from django_helisched.jobs.records import maker
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from django_helisched.driver.held import Held
    from django_helisched.functions import JobFunction
    from django_helisched.jobs.outcome import Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a body ended, and what it raised. ``was_stopped``: an exception was raised in it, at any place."""

    ending: Ending
    error: BaseException | None = None
    was_stopped: bool = False


# A short job is made of these, and of little else.
_ran, _job_context = maker(Ran), maker(JobContext)


class Body:
    """One run of a function for a claim.

    It starts with nothing of the job before: its own context variables, and so
    the default language and time zone.
    """

    def __init__(
        self,
        function: JobFunction[Any, Any],
        held: Held,
        *,
        max_result_bytes: int,
        grace: timedelta,
        around: Callable[[], AbstractContextManager[None]],
        overtime: Callable[[type[Stop]], object],
    ) -> None:
        self._function = function
        self._held = held
        self._limit = max_result_bytes
        self.grace = grace.total_seconds()
        self._around = around
        self.overtime = overtime
        self._was_stopped = False

    def run(self) -> Ran:
        """Return how the body ended; whatever it raises, SystemExit included, is part of the answer.

        Where it was abandoned meanwhile (``Held.is_abandoned``) the answer is of no use any more.
        """
        with self._around() if self._may_be_abandoned else nullcontext():
            ran = Context().run(self._run)
        self._held.conclude()
        return replace(ran, was_stopped=True) if self._was_stopped else ran

    @property
    def _may_be_abandoned(self) -> bool:
        return self._held.claim.timeout is not None or self._function.interruptible

    def begin(self) -> float | None:
        """Let the time of the body begin, and return how many seconds it has; None: no limit."""
        timeout = self._held.claim.timeout
        if timeout is None:
            return None
        seconds = timeout.total_seconds()
        self._held.control.deadline = elapsed() + seconds
        return seconds

    def entered(self) -> AbstractContextManager[JobContext]:
        """Make this the current job inside the block."""
        return entered(context_of(self._held))

    def call(self) -> Any:
        """Call the function: what it returns, for an async one a coroutine."""
        claim = self._held.claim
        return self._function.func(*claim.args, **claim.kwargs)

    def returned(self, value: Any) -> Ran:
        """Return the end of a body that returned ``value``."""
        return _ran(ending=ending_of_value(value, self._limit))

    def raised(self, error: BaseException) -> Ran:
        """Return the end of a body that raised ``error``."""
        # What a body asks for by name counts, also while it is being stopped.
        asked = isinstance(error, RetryLater | NonRetryable | JobCanceled)
        timeout = self._held.claim.timeout
        if timeout is not None and not asked and is_stop(error, OutOfTime):
            return _ran(ending=ending_of_timeout(self._held.claim.id, timeout, error), error=error)
        return _ran(ending=ending_of_error(error, stop_requested=self._held.must_stop), error=error)

    def _run(self) -> Ran:
        seconds = self.begin()
        try:
            with self.entered():
                value = self._call(seconds)
        except BaseException as error:
            return self.raised(error)
        return self.returned(value)

    def _call(self, seconds: float | None) -> Any:
        if self._function.is_async:
            return _run_async(self.call, seconds, self._held, self.overtime, self.grace)
        value = self._guarded(self.call, seconds)
        refuse_coroutine(self._function, value)
        return value

    def _guarded(self, body: Callable[[], Any], seconds: float | None) -> Any:
        interruptible = self._function.interruptible
        if seconds is None and not interruptible:
            return body()
        guard = Guard(seconds, self.overtime, self.grace)
        try:
            # Outside of the guard's reach, since this takes a lock that others wait for.
            with self._held.interruptible(guard.interrupt) if interruptible else nullcontext():
                return guard.call(body)
        finally:
            self._was_stopped = guard.has_raised


def context_of(held: Held) -> JobContext:
    """Return what ``current_job()`` gives the body of this claim."""
    claim = held.claim
    return _job_context(
        id=claim.id,
        fence=claim.fence,
        fn_path=claim.fn_path,
        attempt=claim.attempt,
        space=claim.space,
        batch=claim.batch_id,
        control=held.control,
        **(_firing(claim.meta) if claim.meta else {}),
    )


def refuse_coroutine(function: JobFunction[Any, Any], value: Any) -> None:
    """Raise NonRetryable where a plain function has returned what somebody should have awaited."""
    if inspect.iscoroutine(value):
        value.close()
        raise NonRetryable(
            f"{function.path} returned a coroutine that nobody awaited. Declare it with async def, "
            "or let its decorator return an async function."
        )


def _firing(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "fire_at": _instant(meta, "fire_at"),
        "missed": int(meta.get("missed", 0)),
        "first_missed_at": _instant(meta, "first_missed_at"),
    }


def _instant(meta: Mapping[str, Any], key: str) -> datetime | None:
    text = meta.get(key)
    return None if text is None else datetime.fromisoformat(text)


def _run_async(
    body: Callable[[], Any],
    seconds: float | None,
    held: Held,
    overtime: Callable[[type[Stop]], object],
    grace: float,
) -> Any:
    """Return what the coroutine returns, or raise what it raises.

    ``sync_to_async`` code of it runs in this thread, on this thread's
    connections: no others are opened, and they are tidied after the job.
    """
    outcome = async_to_sync(partial(_bounded, body, seconds, held, overtime, grace))()
    if isinstance(outcome, _Raised):
        raise outcome.error
    return outcome


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


async def _bounded(
    body: Callable[[], Any],
    seconds: float | None,
    held: Held,
    overtime: Callable[[type[Stop]], object],
    grace: float,
) -> Any:
    loop = asyncio.get_running_loop()
    # A task of its own: canceling it cannot hit the bridge that waits for it.
    task = asyncio.create_task(_caught(body))
    with held.interruptible(lambda: loop.call_soon_threadsafe(task.cancel)):
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if done:
            return task.result()
        has_told = False
        # Again and again: a body may swallow a cancellation, or await something that does.
        while task.cancel():
            done, _ = await asyncio.wait({task}, timeout=grace)
            if not done and not has_told:
                has_told = True
                overtime(OutOfTime)
    outcome = task.result()
    if isinstance(outcome, _Raised):
        return _Raised(as_timeout(outcome.error))
    return outcome


async def _caught(body: Callable[[], Any]) -> Any:
    # A task that ends by SystemExit or KeyboardInterrupt would take the whole loop with it.
    try:
        return await body()
    except BaseException as error:
        return _Raised(error)


def as_timeout(error: BaseException) -> OutOfTime:
    """Return the exception of a deadline that came out of canceling a body, with ``error``."""
    timed_out = OutOfTime().with_traceback(error.__traceback__)
    timed_out.__context__ = error
    return timed_out
