"""How a sleeping driver is told to look."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Wakeup:
    """A bell that any thread may ring, and a signal handler, too.

    A handler may run while its own thread is inside ``wait``. An Event's lock
    would be held by that very thread then; a SimpleQueue can be put to anywhere.
    """

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()
        self._rung = False

    def ring(self) -> None:
        """End the present wait, or the next one; returns at once."""
        # A bell that is rung already needs no second ring, or rings would pile up during a long
        # pass. Whoever clears it looks afterwards, and sees what this ring stands for.
        if not self._rung:
            self._rung = True
            self._rings.put(None)

    def clear(self) -> None:
        """Forget earlier rings. Look for work only after this, so that no ring is lost."""
        self._rung = False
        try:
            while True:
                self._rings.get_nowait()
        except Empty:
            return

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most so long, and tell whether there was one. The ring stays until cleared."""
        if self._rung or seconds <= 0:
            return self._rung
        try:
            self._rings.get(timeout=seconds)
        except Empty:
            return False
        return True
