"""Why a schedule is refused, and at which place of its text."""

from __future__ import annotations

from typing import NamedTuple, Self

from django_helisched.exceptions import HelischedError, InvalidOption

# Enough to recognise an expression in a message; a hostile one must not fill the log.
_SHOWN = 80


class InvalidSchedule(HelischedError, ValueError):
    """The schedule cannot be understood, or could never fire.

    ``str()`` is one whole sentence for people; ``reason`` is the part after the quoted
    expression. ``position`` and ``length`` mark the place to blame in ``text``, if there
    is one.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        text: str = "",
        position: int | None = None,
        length: int = 0,
    ) -> None:
        super().__init__(message)
        self.reason = reason or message
        self.text = text
        self.position = position
        self.length = length

    def within(self, place: str) -> Self:
        """Make the same error with the place of the schedule in front."""
        return type(self)(
            f"{place}: {self}", reason=self.reason, text=self.text, position=self.position, length=self.length
        )

    @property
    def pointer(self) -> str:
        """Give the expression with carets under the place to blame, or "" without one."""
        if self.position is None:
            return ""
        line = "".join(char if char.isprintable() else " " for char in self.text)
        return f"{line}\n{' ' * self.position}{'^' * max(self.length, 1)}"


class UnknownZone(InvalidSchedule):
    """The time zone data has no zone of this name."""


def declared_twice(name: str, first: str, second: str) -> InvalidOption:
    """Make the error for two declarations of one name; both places are ``file:line``."""
    places = f" at {first} and at {second}" if first and second else ""
    return InvalidOption(f'The cron "{name}" is declared twice{places}. Give one of them another name.')


def shown(text: str) -> str:
    """Quote text for a message: escaped, and cut when long."""
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    printable = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut)
    return f'"{printable}"'


class Piece(NamedTuple):
    """A stretch of an expression: the field, list member or number at hand."""

    text: str
    start: int
    end: int

    @classmethod
    def whole(cls, text: str) -> Self:
        """Take all of ``text``."""
        return cls(text, 0, len(text))

    @property
    def value(self) -> str:
        """Give the characters of the piece."""
        return self.text[self.start : self.end]

    def split(self, separator: str) -> list[Self]:
        """Cut at each separator; the pieces keep their places."""
        pieces = []
        start = self.start
        for part in self.value.split(separator):
            pieces.append(type(self)(self.text, start, start + len(part)))
            start += len(part) + len(separator)
        return pieces

    def without_last(self) -> Self:
        """Give the piece without its last character."""
        return type(self)(self.text, self.start, self.end - 1)

    def refuse(self, reason: str) -> InvalidSchedule:
        """Make the error that says why this piece cannot stand here."""
        return InvalidSchedule(
            f"{shown(self.text)}: {reason}.",
            reason=reason,
            text=self.text,
            position=self.start,
            length=self.end - self.start,
        )
