"""Crons that code derives from the project's own data: one list for each space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from django_helisched.exceptions import InvalidOption

from .cron import CronDeclaration
from .options import MAX_SPACE, checked_name

# The room that the column has, less the word in front.
MAX_PROVIDER = 80 - len("provider:")

Entries: TypeAlias = Iterable[CronDeclaration]
Listing: TypeAlias = Callable[[], Iterable[tuple[str, Entries]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A function that yields ``(space, entries)`` for every space that has crons.

    The entries of a space are an iterable of declarations, such as a list made by
    ``cron_jobs()``, or a generator, whose body then runs, and fails, for that space alone.
    """

    name: str
    fn: Listing
    origin: str = ""

    @property
    def source(self) -> str:
        """Give the source under which its rows are kept."""
        return f"provider:{self.name}"

    def spaces(self) -> Iterator[tuple[str, Entries]]:
        """List the spaces with their entries, not yet looked at. Raise whatever the function raises."""
        listing: Any = self.fn()
        if not isinstance(listing, Iterable):
            raise InvalidOption(f"it returned {listing!r}; yield (space, entries) for each space.")
        seen: set[str] = set()
        for pair in listing:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise InvalidOption(f"it yielded {pair!r}; yield (space, entries) for each space.")
            space, entries = checked_name("the space", pair[0], limit=MAX_SPACE, blank=True), pair[1]
            if space in seen:
                raise InvalidOption(f'it yielded the space "{space}" twice; yield all its entries at once.')
            seen.add(space)
            yield space, entries


def in_space(entries: Entries, *, source: str, space: str) -> tuple[CronDeclaration, ...]:
    """Give the entries as declarations of one source and space. Raise InvalidOption for anything else."""
    if not isinstance(entries, Iterable):
        raise InvalidOption(f"the entries of a space must be an iterable of declarations, not {entries!r}.")
    return tuple(_placed(entry, source, space) for entry in entries)


def _placed(entry: Any, source: str, space: str) -> CronDeclaration:
    if not isinstance(entry, CronDeclaration):
        raise InvalidOption(f"an entry must be a declaration, such as cron_jobs() collects, not {entry!r}.")
    if entry.space not in {"", space}:
        raise InvalidOption(f'The cron "{entry.name}" is declared for the space "{entry.space}", not for "{space}".')
    return replace(entry, source=source, space=space)
