"""@mutation and @action: make a function runnable as a job."""

from __future__ import annotations

import difflib
import inspect
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from django_helisched.exceptions import InvalidFunction, InvalidOption
from django_helisched.functions import options as checks
from django_helisched.functions.function import JobFunction
from django_helisched.functions.limiting import named_parameters
from django_helisched.functions.registry import register
from django_helisched.jobs.backoff import Backoff
from django_helisched.jobs.limit import Limit
from django_helisched.jobs.words import DEFAULT_QUEUE, Kind
from django_helisched.models.job import PATH_LENGTH, QUEUE_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

P = ParamSpec("P")
R = TypeVar("R")


@overload
def mutation(func: Callable[P, R], /) -> JobFunction[P, R]: ...
@overload
def mutation(
    *,
    max_failures: int | None = None,
    timeout: checks.Duration | None = None,
    queue: str = DEFAULT_QUEUE,
    priority: int = 0,
    backoff: Mapping[str, float] | None = None,
    interruptible: bool = False,
    aliases: Sequence[str] = (),
    concurrency: Limit | None = None,
) -> Callable[[Callable[P, R]], JobFunction[P, R]]: ...
def mutation(func: Any = None, /, **options: Any) -> Any:
    """Register a function whose effects on the database happen exactly once.

    Its body runs in one transaction together with the job's success: what it
    writes through the app's database alias commits with it, or not at all.
    ``max_failures``: the Nth failure is final. ``timeout``: seconds or a
    timedelta. ``backoff``: a dict of initial, base and max seconds.
    ``interruptible``: a cancel raises an exception in the running body.
    ``aliases``: older dotted paths under which jobs may still be stored.
    ``concurrency``: a Limit on how many of its jobs run at once.
    Raises InvalidFunction, InvalidOption or TypeError at declaration.
    """
    return _decorate(func, Kind.MUTATION, options)


@overload
def action(func: Callable[P, R], /) -> JobFunction[P, R]: ...
@overload
def action(
    *,
    at_most_once: bool = False,
    max_failures: int | None = None,
    timeout: checks.Duration | None = None,
    queue: str = DEFAULT_QUEUE,
    priority: int = 0,
    backoff: Mapping[str, float] | None = None,
    interruptible: bool = False,
    aliases: Sequence[str] = (),
    concurrency: Limit | None = None,
) -> Callable[[Callable[P, R]], JobFunction[P, R]]: ...
def action(func: Any = None, /, **options: Any) -> Any:
    """Register a function that talks to the world: it runs at least once.

    No transaction is open around it. With ``at_most_once=True`` it is never
    started twice unless it raises RetryLater. Other options as for mutation.
    """
    return _decorate(func, Kind.ACTION, options)


def _decorate(func: Any, kind: Kind, options: dict[str, Any]) -> Any:
    def decorate(func: Callable[P, R]) -> JobFunction[P, R]:
        path = _check_function(func, kind)
        _check_names(path, kind, options)
        function = JobFunction(func, path=path, kind=kind, **_checked(kind, **options))
        _check_interruption(function)
        if function.concurrency is not None:
            function.concurrency.check_names(path, named_parameters(function))
        register(function)
        return function

    return decorate if func is None else decorate(func)


_RENAMED = {"max_retries": "max_failures", "retries": "max_failures", "max_attempts": "max_failures"}


def _check_names(path: str, kind: Kind, options: Mapping[str, Any]) -> None:
    known = [name for name in inspect.signature(_checked).parameters if name != "kind"]
    for name in options:
        if name not in known:
            meant = _RENAMED.get(name) or next(iter(difflib.get_close_matches(name, known, n=1)), "")
            hint = f' Did you mean "{meant}"?' if meant else f" It takes: {', '.join(known)}."
            raise TypeError(f'@{kind} on {path} got an unknown option "{name}".{hint}')


def _check_function(func: Any, kind: Kind) -> str:
    if not inspect.isfunction(func):
        raise InvalidFunction(f"@{kind} decorates functions; {func!r} is not one.")
    name = f"{func.__module__}.{func.__qualname__}"
    if "." in func.__qualname__ or "<lambda>" in name:
        raise InvalidFunction(
            f"{func.__qualname__} cannot be a job: a worker could not import it. Move it to the top level of a module."
        )
    if kind is Kind.MUTATION and inspect.iscoroutinefunction(func):
        raise InvalidFunction(
            f"{name} is async, and a mutation runs inside one database transaction, which async code cannot hold. "
            "Write it as a plain def, or make it an @action that enqueues a mutation for its database work."
        )
    if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        raise InvalidFunction(f"{name} is a generator, whose body would never run. Return a value instead of yielding.")
    return checks.check_text(name, f"the path of {func.__qualname__}", PATH_LENGTH)


def _check_interruption(function: JobFunction[Any, Any]) -> None:
    if function.interruptible and function.is_async:
        raise TypeError(
            f"interruptible=True on {function.path} is for plain functions: an async one is cancelled at its next "
            "await as it is. Leave it out."
        )


def _checked(
    kind: Kind,
    *,
    at_most_once: bool = False,
    max_failures: int | None = None,
    timeout: checks.Duration | None = None,
    queue: str = DEFAULT_QUEUE,
    priority: int = 0,
    backoff: Mapping[str, float] | None = None,
    interruptible: bool = False,
    aliases: Sequence[str] = (),
    concurrency: Limit | None = None,
) -> dict[str, Any]:
    if at_most_once and kind is Kind.MUTATION:
        raise TypeError("at_most_once is for actions: a mutation takes effect exactly once as it is.")
    if isinstance(aliases, str):
        raise TypeError(f'aliases={aliases!r} must be a list of dotted paths: aliases=["{aliases}"].')
    if concurrency is not None and not isinstance(concurrency, Limit):
        raise TypeError(f"concurrency={concurrency!r} must be a Limit: concurrency=Limit(2).")
    if max_failures is not None:
        checks.check_max_failures(max_failures, at_most_once=at_most_once)
    return {
        "at_most_once": at_most_once,
        "max_failures": max_failures,
        "timeout": None if timeout is None else checks.check_duration(timeout, "timeout", at="declaration"),
        "queue": checks.check_text(queue, "queue", QUEUE_LENGTH, blank=False),
        "priority": checks.check_priority(priority),
        "backoff": None if backoff is None else _backoff(backoff),
        "interruptible": checks.check_flag(interruptible, "interruptible"),
        "aliases": tuple(checks.check_text(alias, "alias", PATH_LENGTH) for alias in aliases),
        "concurrency": concurrency,
    }


def _backoff(value: Mapping[str, float]) -> Backoff:
    unknown = sorted(set(value) - {"initial", "base", "max"})
    if unknown:
        raise InvalidOption(f'backoff has no "{unknown[0]}"; it takes initial, base and max, in seconds.')
    return Backoff(**value)
