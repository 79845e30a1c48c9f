"""Check a call against the function before anything is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.exceptions import InvalidArguments
from django_helisched.jobs import payload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django_helisched.functions.function import JobFunction

_NOTHING = "Nothing was enqueued."
_AS_TEXT = {"datetime": "{}.isoformat()", "date": "{}.isoformat()", "Decimal": "str({})", "UUID": "str({})"}


def check_arguments(
    function: JobFunction[Any, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    consequence: str = _NOTHING,
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments as they will be read back, or raise InvalidArguments.

    The sentence names the argument, the mend and the ``consequence``; values are
    never part of it.
    """
    check_binding(function, args, kwargs, consequence=consequence)
    names = function.shape.names
    checked = [
        value
        if payload.is_plain(value)
        else _check_value(function, names[index] if index < len(names) else f"*args[{index}]", value, consequence)
        for index, value in enumerate(args)
    ]
    if not kwargs:
        return checked, {}
    return checked, {key: _check_value(function, key, value, consequence) for key, value in kwargs.items()}


def check_binding(
    function: JobFunction[Any, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    consequence: str = _NOTHING,
) -> None:
    """Raise InvalidArguments where the function could not be called like this."""
    if function.shape.takes(args, kwargs):
        return
    try:
        function.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidArguments(f"{_name(function)}() {_binding_error(function, kwargs, error)} {consequence}") from None


def check_size(function: JobFunction[Any, Any], limit: int, *parts: Any) -> None:
    """Raise InvalidArguments where the JSON of ``parts`` is longer than ``limit`` bytes."""
    size = sum([len(payload.dumps(part).encode()) for part in parts if part])
    if size > limit:
        raise InvalidArguments(
            f"The arguments of {function.path} take {size} bytes of JSON; at most {limit} are stored "
            '(HELISCHED["MAX_ARGS_BYTES"]). Store the data and pass its id. Nothing was enqueued.'
        )


def _binding_error(function: JobFunction[Any, Any], kwargs: Mapping[str, Any], error: TypeError) -> str:
    takes = ", ".join(function.signature.parameters) or "no arguments"
    for key in kwargs:
        if key not in function.signature.parameters:
            return f'got an unexpected argument "{key}" (it takes: {takes}).'
    return f"{error} (it takes: {takes})."


def _check_value(function: JobFunction[Any, Any], name: str, value: Any, consequence: str) -> Any:
    try:
        return payload.canonical(value, f'argument "{name}"')
    except payload.NotJson as error:
        hint = ""
        if hasattr(value, "pk"):
            hint = f" Pass its id: {_name(function)}.enqueue({name}.pk)."
        elif type(value).__name__ in _AS_TEXT:
            hint = f" Pass it as text: {_AS_TEXT[type(value).__name__].format(name)}."
        raise InvalidArguments(f"{_name(function)}(): {error}.{hint} {consequence}") from None


def _name(function: JobFunction[Any, Any]) -> str:
    return function.path.rpartition(".")[2]
