"""How many jobs may run at once: the declaration, and the key that its jobs share."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from string import Formatter
from typing import Any, cast

from django_helisched.exceptions import InvalidOption
from django_helisched.jobs.words import Hold

BY_SPACE = "space"
KEY_LENGTH = 200  # characters of Job.limit_key and Limit.key
CAPACITY_MAX = 2**31 - 1  # what the column holds

_FUNCTION, _SPACE, _TEXT, _DIGEST = "fn:", "space:", "key:", "sha256:"
_SHOWN = 100  # characters of a long key that people still see


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``capacity`` jobs of one key run at once, whatever the number of processes.

    Without ``key`` it is the function itself. ``"space"`` is the space of the
    job. Anything else is a template over the arguments of the call,
    ``"order:{order_id}"``, where ``{space}`` is the job's space if no argument
    has that name. Functions that name the same key share it.
    """

    capacity: int
    key: str = ""

    def __post_init__(self) -> None:
        capacity, key = cast("Any", self.capacity), cast("Any", self.key)
        if isinstance(capacity, bool) or not isinstance(capacity, int) or not 1 <= capacity <= CAPACITY_MAX:
            raise InvalidOption(f"Limit({capacity!r}): the capacity must be a whole number from 1 to {CAPACITY_MAX}.")
        if not isinstance(key, str):
            raise InvalidOption(f"Limit(key={key!r}): the key must be a string.")
        if not _is_clean(key):
            raise InvalidOption(
                f"Limit(key={self.key!r}): the key must not begin or end with a blank or hold control characters."
            )
        self.names()

    def __str__(self) -> str:
        return f'Limit({self.capacity}, key="{self.key}")' if self.key else f"Limit({self.capacity})"

    def names(self) -> tuple[str, ...]:
        """Return the arguments that the template names, in its order."""
        try:
            parts = list(Formatter().parse(self.key))
        except ValueError as error:
            raise InvalidOption(f'Limit(key="{self.key}"): {error}. Write a literal brace twice.') from None
        for _, name, spec, conversion in parts:
            if name is not None and (spec or conversion or not name.isidentifier()):
                raise InvalidOption(
                    f'Limit(key="{self.key}"): braces take the name of an argument and nothing else, '
                    'as in "order:{order_id}".'
                )
        return tuple(name for _, name, _, _ in parts if name is not None)

    def check_names(self, fn_path: str, parameters: Collection[str]) -> None:
        """Raise InvalidOption where the template names an argument that the function does not have."""
        for name in self.names():
            if name not in parameters and name != BY_SPACE:
                takes = ", ".join(parameters) or "no arguments"
                raise InvalidOption(
                    f'The limit of {fn_path} has the key "{self.key}", but the function has no argument "{name}" '
                    f"(it takes: {takes})."
                )

    def key_for(self, fn_path: str, arguments: Mapping[str, Any], space: str) -> str:
        """Return the key of one call: the same for the same values, and another one for others."""
        if not self.key:
            return _bounded(_FUNCTION + fn_path)
        if self.key == BY_SPACE:
            return _bounded(_SPACE + space)
        values = {name: text_of(arguments.get(name, space)) for name in self.names()}
        text = self.key.format(**values)
        # What people see is what they wrote, unless it could be taken for one of the others.
        return _bounded(_TEXT + text if text.startswith((_FUNCTION, _SPACE, _TEXT, _DIGEST)) else text)


def hold_of(limit_key: str, next_run_at: datetime, now: datetime) -> Hold:
    """Return the hold of a pending job that is not out: none where it has no limit."""
    if not limit_key:
        return Hold.NONE
    return Hold.LIMIT if next_run_at <= now else Hold.LATER


def text_of(value: Any) -> str:
    """Return an argument as a key shows it: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)


def _bounded(key: str) -> str:
    """Return a key that every database stores and compares alike."""
    if key and len(key) <= KEY_LENGTH and _is_clean(key):
        return key
    shown = "".join(character for character in key[:_SHOWN] if character.isprintable()).strip()
    return f"{_DIGEST}{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}:{shown}".strip()


def _is_clean(text: str) -> bool:
    return text == text.strip() and not any(ord(character) < 32 for character in text)
