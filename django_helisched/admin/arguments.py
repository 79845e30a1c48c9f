"""Stored values as text for people: pretty, cut, and without what looks like a secret."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from django_helisched.functions import find

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_TEXT: Final = 4_000  # characters of one value: a page stays readable, whatever was stored
MAX_ARGUMENTS: Final = 100  # arguments of one call that are listed
MASK: Final = "•••"

_SECRET = re.compile(r"passw(or)?d|passphrase|pwd|secret|token|apikey|authorization|credential|privatekey|accesskey")


@dataclass(frozen=True, slots=True)
class Shown:
    """One value: what it is called, its text, and how many characters were cut off."""

    label: str
    text: str
    cut: int = 0


def is_secret(name: str) -> bool:
    """Tell whether a key or parameter is named like something that must not be seen."""
    return _SECRET.search(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def show_value(label: str, value: Any) -> Shown:
    """Return ``value`` as indented JSON, secrets masked; ``label`` may make the whole a secret."""
    hidden = MASK if is_secret(label) else masked(value)
    text = json.dumps(hidden, ensure_ascii=False, indent=2, default=str)
    return Shown(label, text[:MAX_TEXT], max(0, len(text) - MAX_TEXT))


def show_call(fn_path: str, args: Any, kwargs: Any) -> list[Shown]:
    """Return a call's arguments, the positional ones under their parameter's name where that is known."""
    names = parameters_of(fn_path)
    shown = []
    for index, value in enumerate(_listed(args)[:MAX_ARGUMENTS]):
        shown.append(show_value(names[index] if index < len(names) else f"#{index + 1}", value))
    for name, value in list(_mapped(kwargs).items())[: MAX_ARGUMENTS - len(shown)]:
        shown.append(show_value(name, value))
    left = len(_listed(args)) + len(_mapped(kwargs)) - len(shown)
    return [*shown, Shown("…", _("%(count)d more") % {"count": left})] if left else shown


def masked(value: Any) -> Any:
    """Return ``value`` with the values of secret keys replaced, at any depth."""
    if isinstance(value, dict):
        return {key: MASK if is_secret(str(key)) else masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def parameters_of(fn_path: str) -> list[str]:
    """Return the names of the positional parameters, none for a function that is not known here."""
    function = find(fn_path)
    if function is None:
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, parameter in function.signature.parameters.items() if parameter.kind in positional]


# A row may hold any JSON, also where a call's arguments should stand.
def _listed(args: Any) -> Sequence[Any]:
    return args if isinstance(args, list) else [] if args is None else [args]


def _mapped(kwargs: Any) -> Mapping[str, Any]:
    return kwargs if isinstance(kwargs, dict) else {} if kwargs is None else {"**kwargs": kwargs}
