"""The job that tells how another one ended.

What it needs (kind, queue, priority, budget) is resolved when the original is
enqueued and stored with it, so that any process can make it, also one that does
not know the function.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django_helisched.jobs import payload
from django_helisched.jobs.job import ClaimedJob, JobSnapshot, NewJob, State, Trigger
from django_helisched.jobs.limit import Limit

if TYPE_CHECKING:
    from django_helisched.jobs.outcome import Outcome

OPTION = "on_complete"  # the key under which JobArgs.options keeps what was resolved
MAX_RESULT = 64 * 1024  # bytes of JSON; a larger value is replaced by a note


def result_of(outcome: Outcome) -> dict[str, Any]:
    """Return what an on_complete function gets as ``result`` for a terminal outcome."""
    if outcome.state is State.SUCCESS:
        return {"kind": "success", "value": bounded(outcome.result)}
    if outcome.state is State.CANCELED:
        return {"kind": "canceled"}
    return {"kind": "failed", "error": outcome.report.line}


def bounded(value: Any) -> Any:
    """Return ``value``, or a note in its place where its JSON is over 64 kB."""
    if value is None or isinstance(value, bool | int | float):
        return value
    size = len(payload.dumps(value).encode())
    return value if size <= MAX_RESULT else {"note": f"a value of {size} bytes was left out"}


def follow_up_of(
    job: JobSnapshot | ClaimedJob,
    *,
    context: Any,
    options: Mapping[str, Any],
    result: Mapping[str, Any],
    new_id: UUID,
    now: datetime,
) -> NewJob | None:
    """Return the on_complete job of ``job``, due now, or None where it has none.

    It has no parent, so that the callback of a canceled job is not born
    canceled, and inherits the space.
    """
    if not job.on_complete:
        return None
    kwargs = {"job_id": str(job.id), "context": context, "result": dict(result)}
    return callback(job.on_complete, options.get(OPTION, {}), kwargs, space=job.space, new_id=new_id, now=now)


def callback(
    fn_path: str,
    resolved: Mapping[str, Any],
    kwargs: Mapping[str, Any],
    *,
    space: str,
    new_id: UUID,
    now: datetime,
) -> NewJob:
    """Return a job that tells of an end, due now; ``resolved`` is what was stored of its function."""
    timeout = resolved.get("timeout")
    return NewJob(
        id=new_id,
        fn_path=fn_path,
        created_at=now,
        due_at=now,
        next_run_at=now,
        kind=resolved.get("kind", "mutation"),
        at_most_once=resolved.get("at_most_once", False),
        queue=resolved.get("queue", "default"),
        priority=resolved.get("priority", 0),
        max_failures=resolved.get("max_failures", 3),
        timeout=None if timeout is None else timedelta(seconds=timeout),
        kwargs=kwargs,
        limit_key=_limit_key(fn_path, resolved, kwargs, space),
        space=space,
        trigger=Trigger.ON_COMPLETE,
    )


def _limit_key(fn_path: str, resolved: Mapping[str, Any], kwargs: Mapping[str, Any], space: str) -> str:
    """Return the limit key of a callback; its capacity is looked up where it is admitted."""
    if "limit" not in resolved:
        return ""
    return Limit(1, key=resolved["limit"]).key_for(fn_path, {**resolved["limit_arguments"], **kwargs}, space)
