"""The limit of a function's jobs: the key of one call, and what this code declares for it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from django_helisched.functions.registry import find
from django_helisched.jobs.limit import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django_helisched.functions.function import JobFunction

_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def named_parameters(function: JobFunction[Any, Any]) -> list[str]:
    """Return the arguments that have a name of their own."""
    return [name for name, parameter in function.signature.parameters.items() if parameter.kind not in _MANY]


def limit_key_of(function: JobFunction[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, space: str) -> str:
    """Return the limit key of a call, "" for a function without a limit.

    A call that the function cannot take has none: it will fail by itself.
    """
    if function.concurrency is None:
        return ""
    try:
        bound = function.signature.bind(*args, **kwargs)
    except TypeError:
        return ""
    bound.apply_defaults()
    return function.concurrency.key_for(function.path, bound.arguments, space)


def limit_of_callback(function: JobFunction[Any, Any]) -> dict[str, Any]:
    """Return what makes the limit key of a callback, whose arguments are known only when it is enqueued."""
    if function.concurrency is None:
        return {}
    bound = function.signature.bind_partial()
    bound.apply_defaults()
    names = [name for name in function.concurrency.names() if name in bound.arguments]
    known = {name: text_of(bound.arguments[name]) for name in names}
    return {"limit": function.concurrency.key, "limit_arguments": known}


def capacity_of(fn_path: str) -> int | None:
    """Return how many jobs under one key of this function may be out; None where this code says nothing."""
    function = find(fn_path)
    return None if function is None or function.concurrency is None else function.concurrency.capacity
