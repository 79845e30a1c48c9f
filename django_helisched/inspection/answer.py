"""An answer for a program, and the same for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Answer:
    """``data`` goes into JSON as it is; ``lines`` say the same to people. ``ok``: the exit code is 0."""

    data: Any
    lines: Sequence[str]
    ok: bool = True


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows under their head, in columns as wide as they must be."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]
    ]


def text_of(duration: timedelta) -> str:
    """Return a duration in its two largest units: "2 h 5 min"."""
    seconds = round(duration.total_seconds())
    if seconds == 0:
        return f"{duration // timedelta(milliseconds=1)} ms"
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for unit, size in units:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])
