"""The lines that one attempt of a job has logged: the newest, and no more than a row should hold."""

from __future__ import annotations

from collections import deque
from itertools import count

from django_helisched.jobs.payload import clean_text
from django_helisched.jobs.report import masked

MAX_LOG = 64_000  # characters of one attempt: a screenful many times over, and small beside a table
MAX_LINES = 1_000
MAX_LINE = 4_000  # characters of one record, its traceback included
_CUT = " [cut]"


class _Kept:
    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=MAX_LINES)
        self.numbers = count(1)


class JobLog:
    """Takes records from any thread, without a lock: an exception that stops a body may land in here.

    What is kept is trimmed as it comes, and exactly once it is read.
    """

    # Made with the first record: most jobs log nothing, and the deque costs more than all else that holds a claim.
    _kept: _Kept | None = None
    _size = 0
    _taken = 0

    def add(self, line: str) -> None:
        """Keep a line, and let go of the oldest where there are too many."""
        line = _cut(masked(clean_text(line)))
        # One of several threads wins, and all of them get what it made.
        kept = self._kept or self.__dict__.setdefault("_kept", _Kept())
        lines = kept.lines
        if len(lines) == MAX_LINES:
            self._drop(lines)
        lines.append(line)
        self._size += len(line) + 1
        self._taken = next(kept.numbers)
        while self._size > MAX_LOG and lines:
            self._drop(lines)

    def text(self) -> str:
        """Return the lines, oldest first, and above them how many earlier ones were dropped."""
        if self._kept is None:
            return ""
        lines, taken = list(self._kept.lines), self._taken
        size = sum(len(line) + 1 for line in lines)
        first = 0
        while size > MAX_LOG:
            size -= len(lines[first]) + 1
            first += 1
        kept = lines[first:]
        dropped = taken - len(kept)
        note = [f"[{dropped} earlier {'record' if dropped == 1 else 'records'} dropped]"] if dropped > 0 else []
        return "\n".join([*note, *kept])

    def _drop(self, lines: deque[str]) -> None:
        try:
            self._size -= len(lines.popleft()) + 1
        except IndexError:
            self._size = 0


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - len(_CUT)] + _CUT
