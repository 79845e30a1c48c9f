"""What hears the words of other processes."""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Ear(Protocol):
    """One way to hear. All but ``interrupt`` is called by the thread that listens."""

    @property
    def name(self) -> str:
        """Return what a person calls it."""
        ...

    @property
    def deaf_because(self) -> str:
        """Return why no word can be heard although it is open, so that it looks by itself often; "" where it can."""
        ...

    def open(self) -> None:
        """Begin to hear: whatever is said once this has returned. Raises what the medium raises."""
        ...

    def hear(self, seconds: float) -> list[str]:
        """Return what was said, after waiting for it at most so long. Raises once nothing can be heard any more."""
        ...

    def say(self, text: str) -> None:
        """Say a word the way other processes do, so that it should be heard. Raises what the medium raises."""
        ...

    def by_its_line(self, ask: Callable[[], bool]) -> bool:
        """Return what ``ask`` returns, whose statements go over the line that is heard by; False: it is not lent.

        For when words are known to arrive: no pooler lends such a line to others. Raises what ``ask`` raises.
        """
        ...

    def close(self) -> None:
        """Hear no more; never raises."""
        ...

    def interrupt(self) -> None:
        """End the present ``hear``, or the next one; may be called by any thread."""
        ...


class Waiting:
    """Waits for a file descriptor to become readable, or for an interruption from another thread.

    The descriptor is the same until ``close``.
    """

    def __init__(self) -> None:
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._selector: selectors.BaseSelector | None = None
        self.is_interrupted = False

    def until_readable(self, descriptor: int | None, seconds: float) -> None:
        """Return when there is something to read, after an interruption, or after so many seconds."""
        if self._ends is None or self._selector is None:
            self._ends, self._selector = socket.socketpair(), selectors.DefaultSelector()
            self._selector.register(self._ends[0], selectors.EVENT_READ)
            if descriptor is not None:
                self._selector.register(descriptor, selectors.EVENT_READ)
        # Only now, since whoever interrupts looks for the ends after that.
        if self.is_interrupted:
            return
        self._selector.select(max(0.0, seconds))

    def interrupt(self) -> None:
        """End every wait from now on."""
        self.is_interrupted = True
        ends = self._ends
        if ends is not None:
            with suppress(OSError):  # closed this instant
                ends[1].send(b"x")

    def close(self) -> None:
        """Let go of what it waits with; a later wait begins anew. To be called before the descriptor is closed."""
        if self._selector is not None:
            self._selector.close()
            self._selector = None
        ends, self._ends = self._ends, None
        for end in ends or ():
            end.close()
