"""Do one thing to many rows, and say truthfully what became of each."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.utils.translation import gettext as _

from django_helisched.exceptions import Busy, HelischedError
from django_helisched.inspection.rows import read_rows, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from django.db.models import Model
    from django.http import HttpRequest

logger = logging.getLogger("django_helisched.admin")

LIMIT: Final = 1_000  # rows of one action: each is a transaction of its own, and a person waits
MAX_BUSY: Final = 5  # each busy row was waited for 2 s; then the rest is left for another try
_CHUNK: Final = 500  # keys of one query: some builds of SQLite take 999 parameters


@dataclass(frozen=True, slots=True)
class Order:
    """What a user asked for: the rows' keys, the reason given, and whether more rows matched than are taken."""

    request: HttpRequest
    keys: Sequence[Any]
    reason: str = ""
    is_cut: bool = False


@dataclass(slots=True)
class Tried:
    """The keys by what became of them; ``refusals`` says why, one sentence each."""

    done: list[Any] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)
    busy: list[Any] = field(default_factory=list)
    refused: list[Any] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    broken: list[Any] = field(default_factory=list)
    untried: list[Any] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Tell whether every row was changed."""
        return not (self.left or self.busy or self.refused or self.broken or self.untried)


def try_each(keys: Sequence[Any], verb: Callable[[Any], bool]) -> Tried:
    """Apply ``verb`` to each key on its own; one that fails harms no other.

    Not one transaction: each row's change stands by itself, as the store made it.
    """
    tried = Tried()
    for index, key in enumerate(keys):
        if len(tried.busy) >= MAX_BUSY:
            tried.untried = list(keys[index:])
            break
        _try_one(tried, key, verb)
    return tried


def _try_one(tried: Tried, key: Any, verb: Callable[[Any], bool]) -> None:
    try:
        changed = verb(key)
    except Busy:
        tried.busy.append(key)
    except (HelischedError, TypeError) as error:
        tried.refused.append(key)
        tried.refusals.append(str(error))
    except Exception:
        logger.exception("An operator's verb failed on %s", key)
        tried.broken.append(key)
    else:
        (tried.done if changed else tried.left).append(key)


def rows_by_key(model: type[Model], keys: Sequence[Any]) -> dict[Any, Any]:
    """Return the rows of ``keys`` as they are now; a missing key has none."""
    found: dict[Any, Any] = {}
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        found.update((row.pk, row) for row in read_rows(rows_of(model).filter(pk__in=chunk)))
    return found


def log_changes(order: Order, changes: Iterable[tuple[Model, str]], *, flag: int = CHANGE) -> None:
    """Write one entry of the admin's log for each changed row."""
    user = order.request.user.pk
    by_text: dict[str, list[Model]] = {}
    for row, text in changes:
        by_text.setdefault(text, []).append(row)
    for text, rows in by_text.items():
        LogEntry.objects.log_actions(user, rows, flag, text)  # type: ignore[arg-type]  # any iterable


def tell(order: Order, tried: Tried, done: str, why_left: Iterable[str]) -> None:
    """Say what was done, and how many rows were left alone for which reason."""
    sentences = [done, _left(tried, why_left), *_troubles(tried)]
    if order.is_cut:
        text = _("Only the first %(count)d matching rows were looked at; repeat for the rest.")
        sentences.append(text % {"count": len(order.keys)})
    level = messages.SUCCESS if tried.is_whole else messages.WARNING
    messages.add_message(order.request, level, " ".join(sentence for sentence in sentences if sentence))


def _left(tried: Tried, why_left: Iterable[str]) -> str:
    if not tried.left:
        return ""
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(Counter(why_left).items()))
    return _("Left alone %(count)d: %(reasons)s.") % {"count": len(tried.left), "reasons": reasons}


def _troubles(tried: Tried) -> list[str]:
    """Say which rows could not be changed at all."""
    sentences = []
    if tried.busy:
        text = _("Busy %(count)d: another transaction held the row; try again.")
        sentences.append(text % {"count": len(tried.busy)})
    if tried.refused:
        shown = " ".join(dict.fromkeys(tried.refusals[:3]))
        sentences.append(_("Refused %(count)d: %(reasons)s") % {"count": len(tried.refused), "reasons": shown})
    if tried.broken:
        text = _("Failed %(count)d: an unexpected error, written to the web server's log.")
        sentences.append(text % {"count": len(tried.broken)})
    if tried.untried:
        sentences.append(_("Not tried %(count)d: too many rows were busy.") % {"count": len(tried.untried)})
    return sentences
