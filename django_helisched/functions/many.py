"""Many calls at once, and those among them that differ in their arguments alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django_helisched import conf
from django_helisched.functions.arguments import check_arguments, check_size
from django_helisched.jobs.ids import uuid7s
from django_helisched.jobs.job import Particulars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from django_helisched.functions.call import Call
    from django_helisched.jobs.job import NewJob

T = TypeVar("T")
U = TypeVar("U")


def numbered(make: Callable[[T], U], things: Iterable[T]) -> list[U]:
    """Return what ``make`` returns for each; its error gets a note that says which of many it was."""
    made: list[U] = []
    try:
        for thing in things:
            made.append(make(thing))  # noqa: PERF401  # the length tells where it failed
    except (TypeError, ValueError, LookupError) as error:
        error.add_note(f"It is number {len(made)} of many, counted from 0. Nothing was enqueued.")
        raise
    return made


def are_alike(calls: Sequence[Call]) -> bool:
    """Tell whether these calls surely make jobs that differ in their ids and arguments alone."""
    if len(calls) < 2:
        return False
    function, common = calls[0].function, _common(calls[0])
    if function.concurrency is not None or function.options.idempotency_key is not None:
        return False
    return all(call.function is function and _common(call) == common for call in calls)


def _common(call: Call) -> tuple[object, ...]:
    return bool(call.args or call.kwargs), call.run_after, call.run_at, call.trigger, call.cron_id, call.overlap_key


def particulars_of(calls: Sequence[Call], pattern: NewJob) -> list[Particulars]:
    """Return what each of these calls, which are alike, has for itself, checked; ``pattern`` has what they share."""
    limit = conf.get_settings().max_args_bytes
    ids = iter(uuid7s(len(calls)))

    def particulars(call: Call) -> Particulars:
        args, kwargs = check_arguments(call.function, call.args, call.kwargs)
        check_size(call.function, limit, args, kwargs, pattern.context)
        return Particulars(next(ids), args, kwargs)

    return numbered(particulars, calls)
