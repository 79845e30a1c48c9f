"""Call back after a commit, and tell others what it changed for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.base import Teller


def after_commit(alias: str, callback: Callable[[], None]) -> None:
    """Call ``callback`` once the open transaction commits, or now where none is open; see JobStore.on_commit."""
    _after_commit(connections[alias], callback)


def _after_commit(connection: BaseDatabaseWrapper, callback: Callable[[], None]) -> None:
    for hook in connection.run_on_commit:
        if hook[1] == callback:
            return
    # Under manual transactions nothing would ever call it.
    if connection.in_atomic_block or connection.get_autocommit():
        connection.on_commit(callback, robust=True)


class Telling:
    """Tells a teller after the commit; without one, nobody. And ``forget`` at once, too, that something is due."""

    def __init__(self, alias: str, teller: Teller | None, forget: Callable[[], None] | None = None) -> None:
        self._alias = alias
        self._teller = teller
        self._forget = forget

    def due(self, is_something: object) -> None:
        """Tell that something is due, unless ``is_something`` says that there is nothing."""
        if not is_something:
            return
        connection = connections[self._alias]
        if self._forget is not None:
            self._forget()
            if connection.in_atomic_block:
                _after_commit(connection, self._forget)
        if self._teller is not None:
            _after_commit(connection, self._teller.something_is_due)

    def canceled(self, is_something: object) -> None:
        """Tell that something is canceled, which may also make way for what waited for it."""
        if is_something and self._teller is not None:
            after_commit(self._alias, self._teller.something_is_canceled)
            after_commit(self._alias, self._teller.something_is_due)
