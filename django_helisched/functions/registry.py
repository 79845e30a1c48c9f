"""The registered functions by path. Only these can ever run: a row names one, it never imports one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from django_helisched.exceptions import InvalidFunction, UnknownFunction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django_helisched.functions.function import JobFunction

_functions: dict[str, JobFunction[Any, Any]] = {}
_aliases: dict[str, JobFunction[Any, Any]] = {}


def register(function: JobFunction[Any, Any]) -> None:
    """Make ``function`` runnable under its path and aliases.

    Defining the same source again (a reload) replaces it; another function
    under a taken path or alias raises InvalidFunction.
    """
    older = _functions.get(function.path)
    if older is not None and _source_of(older) != _source_of(function):
        raise InvalidFunction(
            f"Two functions have the path {function.path} ({_source_of(older)} and {_source_of(function)}). Rename one."
        )
    _check_shared_limit(function)
    for alias in function.aliases:
        taken = _aliases.get(alias, _functions.get(alias))
        if taken is not None and taken.path != function.path:
            raise InvalidFunction(f'The alias "{alias}" of {function.path} already names {taken.path}. Remove one.')
    _functions[function.path] = function
    _aliases.update(dict.fromkeys(function.aliases, function))


def _check_shared_limit(function: JobFunction[Any, Any]) -> None:
    limit = function.concurrency
    if limit is None or not limit.key:
        return
    for other in _functions.values():
        theirs = other.concurrency
        shared = other.path != function.path and theirs is not None and theirs.key == limit.key
        if shared and theirs is not None and theirs.capacity != limit.capacity:
            raise InvalidFunction(
                f'{function.path} and {other.path} share the limit key "{limit.key}", but say {limit.capacity} and '
                f"{theirs.capacity}. Give both one capacity, or one of them another key."
            )


def find(path: str) -> JobFunction[Any, Any] | None:
    """Return the function registered under a path or alias, or None."""
    return _functions.get(path) or _aliases.get(path)


def resolve(function_or_path: Any) -> JobFunction[Any, Any]:
    """Return the registered function for a JobFunction or a dotted path.

    Raises UnknownFunction for a path that nothing has, TypeError for anything else.
    """
    path = getattr(function_or_path, "path", function_or_path)
    if not isinstance(path, str):
        raise TypeError(
            f"{function_or_path!r} is not a registered function. Decorate it with @mutation or @action, "
            "or name it by its dotted path."
        )
    found = find(path)
    if found is None:
        raise UnknownFunction(
            f'No registered function has the path "{path}".{_hint(path)} Decorate it with @mutation or @action '
            "in a jobs.py of an installed app."
        )
    return found if isinstance(function_or_path, str) else function_or_path


def registered() -> Mapping[str, JobFunction[Any, Any]]:
    """Return the functions by path, aliases left out."""
    return dict(sorted(_functions.items()))


def known_paths() -> frozenset[str]:
    """Return every path and alias that this process can run."""
    return frozenset(_functions) | frozenset(_aliases)


def _hint(path: str) -> str:
    near = difflib.get_close_matches(path, _functions, n=1)
    return f' Did you mean "{near[0]}"?' if near else ""


def _source_of(function: JobFunction[Any, Any]) -> str:
    code = getattr(function.func, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function.func)
