"""JSON that comes back exactly as it went in, on every database.

Stored as text: a database's own JSON type reorders keys and turns 1e22 into an
integer. Refused before anything is stored: what JSON cannot hold (sets,
datetimes, NaN) and what one of the databases cannot (NUL, lone surrogates).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

# A reader parses integers of at most this many digits (sys.get_int_max_str_digits()).
MAX_INT_DIGITS = 4300
_TOO_LONG = 10**MAX_INT_DIGITS
# Deeper values would overflow the recursive parsers that read them back.
MAX_DEPTH = 200

_SMALL = 2**63
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_TEXT_OF: dict[type, Callable[[Any], str]] = {int: int.__repr__, str: _encode}


class NotJson(ValueError):
    """A value cannot be stored; ``where`` is its place, ``what`` the reason."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where or 'the value'} {what}")
        self.where = where
        self.what = what


def canonical(value: Any, where: str = "") -> Any:
    """Return ``value`` as it will be read back: tuples as lists, the rest unchanged.

    Raises NotJson naming the place of the first part that cannot be stored.
    """
    return _canonical(value, where, 0)


def is_plain(value: Any) -> bool:
    """Tell whether ``value`` is surely canonical: nothing, a flag, a small number, or ASCII text."""
    kind = type(value)
    if kind is int:
        return bool(-_SMALL < value < _SMALL)
    if kind is str:
        return value.isascii() and "\x00" not in value
    return value is None or kind is bool


def dumps(value: Any) -> str:
    """Return canonical ``value`` as compact JSON text."""
    if type(value) is list:
        # Most arguments are a few numbers and names, for which the encoder's preparations cost more than its work.
        try:
            return f"[{','.join([_TEXT_OF[type(item)](item) for item in value])}]"
        except KeyError:
            pass
    return _encode(value)


def _canonical(value: Any, where: str, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if depth > MAX_DEPTH:
        raise NotJson(where, f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return check_text(value, where)
    if isinstance(value, int | float):
        return _number(value, where)
    if isinstance(value, list | tuple):
        return [_canonical(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, where): _canonical(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    raise NotJson(where, f"is {_article(type(value).__name__)}, which cannot be stored as JSON")


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise NotJson(where, f"has the key {key!r}, which is not a string; JSON would change it")
    return check_text(key, where)


def _number(value: int | float, where: str) -> int | float:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(where, f"is {value}, which JSON cannot hold")
        return float(value)
    if abs(value) >= _TOO_LONG:
        raise NotJson(where, f"is an integer of more than {MAX_INT_DIGITS} digits")
    return int(value)


def check_text(value: str, where: str) -> str:
    """Return ``value`` unless it holds NUL or a lone surrogate, which raises NotJson."""
    if "\x00" in value:
        raise NotJson(where, "contains a NUL character, which databases cannot store")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotJson(where, "contains a lone surrogate, which is not valid text") from None
    return str(value)


def clean_text(value: str) -> str:
    """Return ``value`` with NUL and lone surrogates shown as escapes, so that any database stores it."""
    value = value.replace("\x00", "\\x00")
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"
