"""The one enqueue: every way to make a job ends here."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django_helisched import conf, context, wiring
from django_helisched.exceptions import InvalidArguments, InvalidOption
from django_helisched.functions import options as checks
from django_helisched.functions import registry
from django_helisched.functions.advice import advise
from django_helisched.functions.arguments import check_arguments, check_binding, check_size
from django_helisched.functions.limiting import limit_key_of, limit_of_callback
from django_helisched.functions.many import are_alike, numbered, particulars_of
from django_helisched.jobs import payload
from django_helisched.jobs.follow_up import OPTION
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import NewJob, Trigger
from django_helisched.jobs.records import maker, remade
from django_helisched.models.job import KEY_LENGTH, QUEUE_LENGTH, SPACE_LENGTH, Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django_helisched.functions.function import JobFunction
    from django_helisched.jobs.job import Enqueued

logger = logging.getLogger("django_helisched")

NAME_LENGTH = 200

_new_job = maker(NewJob)

_NOBODY, _NEVER = UUID(int=0), datetime(1970, 1, 1, tzinfo=UTC)  # until a pattern becomes a job


@dataclass(frozen=True, slots=True)
class Call:
    """A function, its arguments, and when it is to run: ``run_at`` wins over ``run_after``."""

    function: JobFunction[Any, Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    run_after: checks.Duration | None = None
    run_at: datetime | None = None
    trigger: str = Trigger.API
    cron_id: UUID | None = None
    overlap_key: str = ""


new_call = maker(Call)


def enqueue_call(call: Call) -> Job:
    """Store one job and return it; see JobFunction.enqueue."""
    store = wiring.job_store()
    (result,) = store.enqueue([build(call, store.now())])
    wiring.wake_on_commit()
    job = _returned(result)
    advise(job)
    return job


def enqueue_calls(calls: Sequence[Call]) -> list[Job]:
    """Store jobs and return them in order, the older one where an idempotency key was taken.

    All are checked before the first is stored; all are stored, or none. The
    error of one among many says which it is.
    """
    if len(calls) == 1:
        return [enqueue_call(calls[0])]
    stored = _enqueue_alike(calls) if are_alike(calls) else _enqueue(calls)
    if stored:
        advise(stored[0])
    return stored


def _enqueue(calls: Sequence[Call]) -> list[Job]:
    store = wiring.job_store()
    now = store.now()
    results = store.enqueue(numbered(lambda call: build(call, now), calls))
    wiring.wake_on_commit()
    return [_returned(result) for result in results]


def _returned(result: Enqueued) -> Job:
    job = Job.from_snapshot(result.job)
    if not result.created:
        logger.info(
            'A job with idempotency key "%s" exists (#%s, %s). Returned it, enqueued nothing.',
            job.idempotency_key,
            job.id.hex[-8:],
            job.state,
        )
    return job


def _enqueue_alike(calls: Sequence[Call]) -> list[Job]:
    store = wiring.job_store()
    now = store.now()
    (pattern,) = numbered(lambda call: build(call, now), calls[:1])
    each = particulars_of(calls, pattern)
    stored = store.enqueue_alike(pattern, each)
    wiring.wake_on_commit()
    return Job.alike(stored, [one.id for one in each])


def build(call: Call, now: datetime) -> NewJob:
    """Return the job that ``call`` describes, checked; ``now`` is the one reading of the clock."""
    function, given = call.function, call.function.options
    settings = conf.get_settings()
    args, kwargs = check_arguments(function, call.args, call.kwargs)
    due_at = _due_at(call, now)
    parent_id, parent_fence = _parent_of(given)
    pattern = _pattern(function, settings)
    check_size(function, settings.max_args_bytes, args, kwargs, pattern.context)
    own = {
        "id": uuid7(),
        "created_at": now,
        "due_at": due_at,
        "next_run_at": max(due_at, now),
        "args": args,
        "kwargs": kwargs,
        "trigger": call.trigger,
        "parent_id": parent_id,
        "parent_fence": parent_fence,
        "cron_id": call.cron_id,
        "overlap_key": call.overlap_key,
        "limit_key": limit_key_of(function, args, kwargs, space=pattern.space),
        "batch_id": _batch_of(given),
    }
    return remade(pattern, own)


def _pattern(function: JobFunction[Any, Any], settings: conf.Settings) -> NewJob:
    """Return what the jobs of ``function`` have in common under its options and ``settings``, checked."""
    if function.options is not checks.NO_OPTIONS:
        return _checked(function, settings)
    known = function.pattern
    if known is None or known[0] is not settings:
        known = function.pattern = (settings, _checked(function, settings))
    return known[1]


def _checked(function: JobFunction[Any, Any], settings: conf.Settings) -> NewJob:
    given = function.options
    on_complete, resolved = _resolve_on_complete(given)
    return _new_job(
        id=_NOBODY,
        created_at=_NEVER,
        due_at=_NEVER,
        next_run_at=_NEVER,
        fn_path=function.path,
        kind=function.kind.value,
        at_most_once=function.at_most_once,
        queue=function.queue
        if given.queue is None
        else checks.check_text(given.queue, "queue", QUEUE_LENGTH, blank=False),
        priority=function.priority if given.priority is None else checks.check_priority(given.priority),
        max_failures=budget_of(function, given.max_failures),
        expires_at=None if given.expires_at is None else checks.check_instant(given.expires_at, "expires_at"),
        timeout=function.timeout or settings.timeout,
        context=_checked_context(function, given.context),
        options=resolved,
        idempotency_key=_checked_key(given.idempotency_key),
        unique_until=checks.check_unique_until(given.unique_until),
        app_version=settings.app_version,
        name=checks.check_text(given.name, "name", NAME_LENGTH),
        space=checks.check_text(given.space, "space", SPACE_LENGTH),
        on_complete=on_complete,
    )


def budget_of(function: JobFunction[Any, Any], asked: int | None = None) -> int:
    """Return the failures a job of ``function`` may have: asked for, declared, or the setting's."""
    if asked is not None:
        return checks.check_max_failures(asked, at_most_once=function.at_most_once)
    if function.at_most_once:
        return 1
    return function.max_failures or conf.get_settings().max_failures


def _due_at(call: Call, now: datetime) -> datetime:
    if call.run_at is not None:
        return checks.check_instant(call.run_at, "run_at")
    if call.run_after is None:
        return now
    try:
        return checks.check_instant(now + checks.check_duration(call.run_after, "run_after"), "run_after")
    except OverflowError:
        raise InvalidOption(f"run_after={call.run_after!r} is past the year 9999. Nothing was enqueued.") from None


def _parent_of(given: checks.JobOptions) -> tuple[UUID | None, int | None]:
    """Return the parent's id, and its fence where that is the job running here."""
    if given.parent is None:
        return None, None
    running = context.running()
    if given.parent is checks.UNSET or (running is not None and _id_of(given.parent) == running.id):
        return (None, None) if running is None else (running.id, running.fence)
    return _id_of(given.parent), None


def _batch_of(given: checks.JobOptions) -> UUID | None:
    """Return the batch that was given, else the one whose block is open here."""
    if given.batch is None:
        return None
    return context.open_batch() if given.batch is checks.UNSET else _id_of(given.batch, "batch")


def _id_of(thing: Any, name: str = "parent") -> UUID:
    try:
        return thing if isinstance(thing, UUID) else UUID(str(getattr(thing, "id", thing)))
    except ValueError:
        what = "job" if name == "parent" else name
        raise InvalidOption(f"{name}={thing!r} is neither a {what} nor a {what}'s id.") from None


def _checked_context(function: JobFunction[Any, Any], value: Any) -> Any:
    try:
        return payload.canonical(value, "context")
    except payload.NotJson as error:
        raise InvalidArguments(f"{function.path}: {error}. Nothing was enqueued.") from None


def _checked_key(key: str | None) -> str | None:
    return None if key is None else checks.check_text(key, "idempotency_key", KEY_LENGTH, blank=False)


def _resolve_on_complete(given: checks.JobOptions) -> tuple[str, dict[str, Any]]:
    return resolve_callback(given.on_complete, {"job_id": "", "context": None, "result": {}})


def resolve_callback(
    callback: JobFunction[Any, Any] | str | None, call: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the path of a callback, which must take ``call``, and what to store of it."""
    if not callback:
        return "", {}
    function = registry.resolve(callback)
    check_binding(function, (), call)
    timeout = function.timeout or conf.get_settings().timeout
    resolved = {
        "kind": str(function.kind),
        "at_most_once": function.at_most_once,
        "queue": function.queue,
        "priority": function.priority,
        "max_failures": budget_of(function),
        "timeout": None if timeout is None else timeout.total_seconds(),
        **limit_of_callback(function),
    }
    return function.path, {OPTION: resolved}
