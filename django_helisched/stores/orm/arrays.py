"""Arrays for PostgreSQL, each as one text: psycopg dumps and quotes them value by value, at more than all the rest.

A statement casts them: ``%s::uuid[]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def plain_array(values: Iterable[Any]) -> str:
    """Return an array of numbers, ids or NULLs."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def text_array(values: Iterable[str | None]) -> str:
    """Return an array of texts or NULLs."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
