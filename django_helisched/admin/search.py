"""The search box: exact qualifiers, each answered from an index or within a bounded window.

Nothing is guessed. A word that cannot be understood gives a message, and no rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _

from django_helisched.admin import states
from django_helisched.functions import registered
from django_helisched.inspection.rows import rows_of
from django_helisched.jobs.job import FailureReason
from django_helisched.jobs.keys import digest_of
from django_helisched.models import Cron

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

MAX_WORDS: Final = 20  # more conditions than a person types; each costs a comparison per row
_MAX_CRONS = 100  # crons of one name: one in each space

_WORD = re.compile(r'(?:(?P<qualifier>[^\s:"]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S*))')


class NotUnderstood(ValueError):
    """A word of the search box means nothing; the text says what would."""


@dataclass(slots=True)
class Search:
    """What the search box asks for. ``is_pinpoint``: few rows by an index, however old."""

    condition: Q = field(default_factory=Q)
    is_pinpoint: bool = False


def parse_search(text: str, now: datetime) -> Search:
    """Return the search that ``text`` describes; raise NotUnderstood with a sentence for people.

    The values of one qualifier are alternatives; different qualifiers must all hold.
    """
    if "\x00" in text:
        raise NotUnderstood(_("The search text holds a NUL character, which no job has."))
    given = _qualified(text)
    search = Search(is_pinpoint=not _PINPOINTS.isdisjoint(given))
    for qualifier, values in given.items():
        if qualifier == "key":
            search.condition &= _keys(values, given.get("space", [""]))
            continue
        any_of = Q()
        for value in values:
            any_of |= _QUALIFIERS[qualifier](value, now)
        search.condition &= any_of
    return search


def is_pinpoint(text: str) -> bool:
    """Tell whether ``text`` names single jobs, whose age does not matter then."""
    try:
        return not _PINPOINTS.isdisjoint(_qualified(text))
    except NotUnderstood:
        return False


def _qualified(text: str) -> dict[str, list[str]]:
    words = [match for match in _WORD.finditer(text) if match.group()]
    if len(words) > MAX_WORDS:
        raise NotUnderstood(_("The search has more than %(count)d words.") % {"count": MAX_WORDS})
    given: dict[str, list[str]] = {}
    for match in words:
        value = match["quoted"] if match["quoted"] is not None else match["plain"]
        qualifier = match["qualifier"]
        if qualifier is None and _uuid(value) is not None:
            qualifier = "id"
        if qualifier not in _QUALIFIERS:
            raise NotUnderstood(_unknown(match.group()))
        given.setdefault(qualifier, []).append(value)
    return given


def _unknown(word: str) -> str:
    return _("“%(word)s” is not understood. Search with %(names)s, or paste the id of a job.") % {
        "word": word[:80],
        "names": ", ".join(f"{name}:" for name in _QUALIFIERS),
    }


def _uuid(value: str) -> UUID | None:
    try:
        return UUID(value)
    except ValueError:
        return None


def _functions(value: str, _now: datetime) -> Q:
    """Match a full path, or the last name of registered functions."""
    paths = [path for path in registered() if path.rpartition(".")[2] == value]
    return Q(fn_path__in=[value, *paths])


def _state(value: str, now: datetime) -> Q:
    view = states.view_named(value.lower())
    if view is None:
        raise NotUnderstood(_no_such("state", value, [*states.VIEWS, *states.ALIASES]))
    return states.condition_of(view, now)


def _reason(value: str, _now: datetime) -> Q:
    if value.lower() not in set(FailureReason):
        raise NotUnderstood(_no_such("reason", value, [reason.value for reason in FailureReason]))
    return Q(failure_reason=value.lower())


def _cron(value: str, _now: datetime) -> Q:
    cron_id = _uuid(value)
    if cron_id is not None:
        return Q(cron_id=cron_id)
    # Read first: as a subquery it would keep MySQL from the index on cron.
    named = rows_of(Cron).filter(name=value).order_by("pk").values_list("pk", flat=True)[:_MAX_CRONS]
    return Q(cron_id__in=list(named))


def _keys(keys: Sequence[str], spaces: Sequence[str]) -> Q:
    return Q(key_digest__in=[digest_of(space, key) for key in keys for space in spaces])


def _id_in(column: str, qualifier: str) -> Callable[[str, datetime], Q]:
    def condition(value: str, _now: datetime) -> Q:
        job_id = _uuid(value)
        if job_id is None:
            raise NotUnderstood(
                _("%(qualifier)s:%(value)s is not the id of a job, which looks like %(example)s.")
                % {"qualifier": qualifier, "value": value[:80], "example": "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"}
            )
        return Q(**{column: job_id})

    return condition


def _equal(column: str) -> Callable[[str, datetime], Q]:
    return lambda value, _now: Q(**{column: value})


def _no_such(qualifier: str, value: str, known: Sequence[str]) -> str:
    return _("%(qualifier)s:%(value)s is not known. Use one of %(known)s.") % {
        "qualifier": qualifier,
        "value": value[:80],
        "known": ", ".join(known),
    }


_QUALIFIERS: Final[dict[str, Callable[[str, datetime], Q]]] = {
    "fn": _functions,
    "queue": _equal("queue"),
    "state": _state,
    "cron": _cron,
    "space": _equal("space"),
    "id": _id_in("pk", "id"),
    "name": _equal("name"),
    "parent": _id_in("parent_id", "parent"),
    "key": _equal("idempotency_key"),  # with the space, by the digest: see parse_search
    "reason": _reason,
}
_PINPOINTS: Final = frozenset({"id", "parent", "key"})
QUALIFIERS: Final = tuple(_QUALIFIERS)
