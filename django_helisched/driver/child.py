"""One process under a supervisor, as the supervisor sees it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django_helisched.driver.vitals import STARTING, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEPT = 65_536  # bytes of a report whose end has not come yet: more is no report
_STARTING = Status(text=STARTING)


class Child:
    """A process that was started fresh, from the same command line; it shares nothing with us but a socket."""

    def __init__(self, command: Sequence[str], number: int, now: float) -> None:
        self.started_at = self.heard_at = now
        self.status = _STARTING
        self.is_silent = False  # its end of the socket is closed: it is about to end
        self._pending = b""
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = ["--child", f"{number}:{theirs.fileno()}"]
            try:
                # A group of its own: Ctrl-C is for us, who pass it on as an order.
                self._process = subprocess.Popen(  # noqa: S603  # our own command line
                    [*command, *arguments], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0
                )
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)  # noqa: FBT003  # its only parameter
        self.socket = ours

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def order(self, order: bytes) -> None:
        """Give an order; a process that ends takes none."""
        with suppress(OSError):
            self.socket.send(order)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()

    def listen(self, now: float) -> None:
        """Take in what it has reported."""
        with suppress(OSError):
            while received := self.socket.recv(_KEPT):
                *lines, self._pending = (self._pending + received)[-_KEPT:].split(b"\n")
                for line in lines:
                    self._hear(line, now)
            self.is_silent = True

    def _hear(self, line: bytes, now: float) -> None:
        try:
            facts: dict[str, Any] = json.loads(line)
            self.status = Status(
                is_live=facts["live"],
                is_ready=facts["ready"],
                was_ready=facts["was_ready"],
                is_stopping=facts["stopping"],
                text=facts["status"],
                in_flight=facts["in_flight"],
                seats=facts["seats"],
            )
        except (ValueError, KeyError, TypeError):
            return  # a report that was cut: the next one comes within a second
        self.heard_at = now

    def poll(self) -> int | None:
        """Return its exit code once it has ended, minus the number of the signal that ended it; else None."""
        return self._process.poll()


def words_of(code: int) -> str:
    """Return how a process ended, as the end of a sentence."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}"
