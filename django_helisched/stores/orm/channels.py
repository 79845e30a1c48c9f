"""How a process tells the others on its database, after a commit, that there is something to learn.

No word is needed: whoever misses one learns the same by polling, later. So
nothing here ever raises, or costs the caller more than one small statement.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

from django.db import connections

from django_helisched.stores.orm.channel_datagram import Datagrams
from django_helisched.stores.orm.channel_notify import Notifications
from django_helisched.stores.words import CANCEL, LOOK, SILENCE, spelled

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("django_helisched")


class Channel(Protocol):
    """What carries words to the processes that listen."""

    def send(self, text: str) -> None:
        """Send one word to everybody, or to nobody where a transaction is open. Raises what the medium raises."""
        ...


def channel_of(alias: str) -> Channel | None:
    """Return the channel of a database; None: it has none, and everybody polls."""
    connection = connections[alias]
    if connection.vendor == "postgresql":
        return Notifications(alias)
    return Datagrams.beside(connection)


class Herald:
    """Says each word once in a while, however often it is asked to. Safe in threads and after a fork.

    The first of many is said at once. Those that follow within SILENCE are not
    said at all: whoever heard the first one looks again when that time is over,
    so that this process needs no timer, and may even die, and nothing is missed.
    """

    def __init__(self, channel: Channel | None, *, now: Callable[[], float] = time.monotonic) -> None:
        self.channel = channel
        self._now = now
        self._said: dict[str, float] = {}
        self._is_failing = False

    def something_is_due(self) -> None:
        """Let the others look for work."""
        self._say(LOOK)

    def something_is_canceled(self) -> None:
        """Let the others hear of a cancel request."""
        self._say(CANCEL)

    def _say(self, kind: str) -> None:
        if self.channel is None:
            return
        now = self._now()
        if now - self._said.get(kind, -SILENCE) < SILENCE:
            return
        # Before it is sent: the silence must be over when it is over for those who hear it.
        self._said[kind] = now
        try:
            self.channel.send(spelled(kind))
        except Exception as error:
            self._said.pop(kind, None)
            self._failed(error)
        else:
            self._is_failing = False

    def _failed(self, error: Exception) -> None:
        level = logging.DEBUG if self._is_failing else logging.WARNING
        self._is_failing = True
        logger.log(
            level,
            "A wake-up could not be sent (%s: %s). The job is stored; a scheduler finds it by polling.",
            type(error).__name__,
            error,
        )
