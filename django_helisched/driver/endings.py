"""From what a body returned or raised to the ending that is decided upon."""

from __future__ import annotations

import asyncio
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django_helisched.driver.deadline import Interrupted, OutOfTime, Stop, is_stop
from django_helisched.driver.results import storable
from django_helisched.exceptions import JobCanceled, NonRetryable, RetryLater
from django_helisched.jobs.outcome import AttemptOutcome, Ending
from django_helisched.jobs.payload import clean_text
from django_helisched.jobs.records import maker
from django_helisched.jobs.report import describe_error, describe_text, masked

if TYPE_CHECKING:
    from datetime import timedelta
    from types import FrameType, TracebackType
    from uuid import UUID

_OWN_FILES = str(Path(__file__).parent)
_MAX_FRAMES = 50  # as many as of an exception
_ending = maker(Ending)


def ending_of_value(value: Any, limit: int) -> Ending:
    """Return the success of a body that returned ``value``; the report notes a value that cannot be stored."""
    result, note = storable(value, limit)
    return _ending(outcome=AttemptOutcome.SUCCESS, result=result, report=note)


def ending_of_error(error: BaseException, *, stop_requested: bool = False) -> Ending:
    """Return the ending of a body that raised ``error``.

    ``stop_requested`` tells a cancellation that somebody asked for from one that
    the body made up. SystemExit and its kin are failures like any other.
    """
    report = describe_error(error.with_traceback(_from_the_body(error.__traceback__)))
    is_asked = isinstance(error, asyncio.CancelledError) or is_stop(error, Interrupted)
    if isinstance(error, JobCanceled) or (stop_requested and is_asked):
        return Ending(outcome=AttemptOutcome.CANCELED, report=report)
    failed = Ending(outcome=AttemptOutcome.FAILED, report=report)
    if isinstance(error, RetryLater):
        return replace(failed, retry_in=error.delay, counts=error.count)
    return replace(failed, retryable=not isinstance(error, NonRetryable))


def ending_of_timeout(job_id: UUID, timeout: timedelta, error: BaseException) -> Ending:
    """Return the ending of a body that was stopped at its deadline; the traceback shows where."""
    told = describe_text(
        "django_helisched.OutOfTime",
        f"#{short(job_id)} stopped after {timeout.total_seconds():g} s (timeout). Raise timeout= or split the work.",
    )
    where = describe_error(error.with_traceback(_from_the_body(error.__traceback__)))
    return Ending(outcome=AttemptOutcome.TIMEOUT, report=replace(told, traceback=where.traceback))


def ending_of_abandonment(job_id: UUID, kind: type[Stop], grace: timedelta, where: str) -> Ending:
    """Return the ending of a body that did not end though it was told to; ``where`` shows what it was doing."""
    name, after, outcome = _ABANDONMENTS[kind]
    text = (
        f"#{short(job_id)} still ran {grace.total_seconds():g} s after {after}, and was abandoned. "
        "The traceback shows what did not let go of it; give that a time limit of its own."
    )
    return Ending(outcome=outcome, report=replace(describe_text(name, text), traceback=where))


_ABANDONMENTS = {
    OutOfTime: ("django_helisched.OutOfTime", "its timeout", AttemptOutcome.TIMEOUT),
    Interrupted: ("django_helisched.Interrupted", "it was asked to stop", AttemptOutcome.CANCELED),
}


def place_of(thread_id: int) -> str:
    """Return where a thread is now, from the first frame that is not the driver's, as a traceback."""
    newest = sys._current_frames().get(thread_id)  # noqa: SLF001  # documented, for debugging such as this
    if newest is None:
        return ""
    return _shown([frame for frame, _ in traceback.walk_stack(newest)][::-1])


def place_of_task(task: asyncio.Task[Any]) -> str:
    """Return where a task of the event loop waits now, as ``place_of`` does for a thread."""
    frames: list[FrameType] = []
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        frames.append(frame)
        awaited = awaited.cr_await
    return _shown(frames)


def _shown(frames: list[FrameType]) -> str:
    own = [number for number, frame in enumerate(frames) if frame.f_code.co_filename.startswith(_OWN_FILES)]
    body = frames[own[-1] + 1 :] if own else frames
    summary = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in body[-_MAX_FRAMES:])
    return masked(clean_text("".join(summary.format())))


def short(job_id: UUID) -> str:
    """Return the last eight digits of an id: random ones, while the first tell the time."""
    return job_id.hex[-8:]


def _from_the_body(whole: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the first frame that is not the driver's."""
    current = whole
    while current is not None and current.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
        current = current.tb_next
    return current or whole
