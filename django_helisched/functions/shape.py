"""Which calls a signature takes, answered faster than by binding them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


class Shape:
    """The parameters of one function. ``names`` are those that a position fills, in order."""

    def __init__(self, signature: inspect.Signature) -> None:
        parameters = signature.parameters.values()
        self.names = tuple(parameter.name for parameter in parameters if parameter.kind in _POSITIONAL)
        self._required = frozenset(
            parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty
        )
        self._least = self._positions_needed()
        self._is_plain = all(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)

    def _positions_needed(self) -> int:
        """Return how many positions fill all that is required."""
        return max((place + 1 for place, name in enumerate(self.names) if name in self._required), default=0)

    def takes(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Tell whether the call surely fits; False: only binding can tell."""
        if not self._is_plain or len(args) > len(self.names):
            return False
        if not kwargs and len(args) >= self._least:
            return True
        by_position, by_name = self.names[: len(args)], self.names[len(args) :]
        return all(name in by_name for name in kwargs) and self._required <= kwargs.keys() | set(by_position)
