"""Which queues a driver serves."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilter:
    """The queues a driver serves: patterns to include (none: all) and to exclude.

    A pattern is a name or has ``*`` at its end: ``mail*``.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, patterns: Collection[str]) -> QueueFilter:
        """Return the filter that ``patterns`` lists; ``!mail`` is one to exclude."""
        exclude = tuple(pattern[1:] for pattern in patterns if pattern.startswith("!"))
        return cls(include=tuple(pattern for pattern in patterns if not pattern.startswith("!")), exclude=exclude)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the filter as one list, for ``of``."""
        return (*self.include, *(f"!{pattern}" for pattern in self.exclude))

    def admits(self, queue: str) -> bool:
        """Tell whether ``queue`` is served."""
        included = not self.include or any(fnmatchcase(queue, pattern) for pattern in self.include)
        return included and not any(fnmatchcase(queue, pattern) for pattern in self.exclude)


EVERY_QUEUE = QueueFilter()
