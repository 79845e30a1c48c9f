"""What a body returned, in a form that every database stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django_helisched.jobs import payload
from django_helisched.jobs.outcome import NO_ERROR, ErrorReport
from django_helisched.jobs.report import describe_text

NOT_STORED = "django_helisched.ResultNotStored"


def storable(value: Any, limit: int) -> tuple[Any, ErrorReport]:
    """Return what to store for a return value, and a note where that is nothing.

    JSON is stored as it is, NUL characters and lone surrogates in it shown as
    escapes. Anything else, or more than ``limit`` bytes, becomes None: the job
    has done its work, so that is no failure.
    """
    if value is None:
        return None, NO_ERROR
    try:
        stored = _canonical(value)
        size = len(payload.dumps(stored).encode())
    except payload.NotJson as error:
        return None, _note(value, f"cannot be stored as JSON: {error}")
    except Exception as error:
        return None, _note(value, f"cannot be stored as JSON ({type(error).__name__})")
    if size > limit:
        return None, _note(
            value, f'takes {size} bytes of JSON; at most {limit} are stored (HELISCHED["MAX_ARGS_BYTES"])'
        )
    return stored, NO_ERROR


def _canonical(value: Any) -> Any:
    try:
        return payload.canonical(value, "it")
    except payload.NotJson:
        return payload.canonical(_escaped(value, payload.MAX_DEPTH), "it")


def _escaped(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return payload.clean_text(value)
    if depth == 0:
        return value
    if isinstance(value, list | tuple):
        return [_escaped(item, depth - 1) for item in value]
    if isinstance(value, Mapping):
        return {_escaped(key, 0): _escaped(item, depth - 1) for key, item in value.items()}
    return value


def _note(value: Any, why: str) -> ErrorReport:
    return describe_text(NOT_STORED, f"The return value, of type {type(value).__name__}, was not stored: it {why}.")
