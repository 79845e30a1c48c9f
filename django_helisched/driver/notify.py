"""Tell systemd how this process is: READY, WATCHDOG, STATUS and STOPPING, as sd_notify(3) has them."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from django_helisched.driver.vitals import STARTING

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from django_helisched.driver.vitals import Status

_VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Notifier:
    """A socket to the service manager. What cannot be sent is not sent: it is never worth a job."""

    def __init__(self, address: str, watchdog: float | None) -> None:
        self.watchdog = watchdog  # seconds within which the manager wants to hear of a live process
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)  # noqa: FBT003  # its only parameter
        # "@" stands for the zero byte of an abstract address.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._told: set[str] = set()

    def __call__(self, status: Status) -> None:
        """Tell the status. READY also while the database is away: the process is up, and waits it out."""
        lines = [f"STATUS={status.text}, {status.in_flight} of {status.seats} seats taken"]
        if status.is_live and status.text != STARTING:
            lines.append("READY=1")
        if status.is_stopping:
            lines.append("STOPPING=1")
        news = [line for line in lines if line not in self._told]
        self._told = {line for line in self._told if not line.startswith("STATUS=")} | set(lines)
        if self.watchdog is not None and status.is_live:
            news.append("WATCHDOG=1")
        if news:
            with suppress(OSError):
                self._socket.sendto("\n".join(news).encode(), self._address)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def notifier(environ: MutableMapping[str, str] = os.environ) -> Notifier | None:
    """Return the notifier that the environment asks for, if any, and keep children of this process from being one."""
    address, usec, pid = (environ.pop(name, "") for name in _VARIABLES)
    if not address.startswith(("/", "@")):
        return None
    is_ours = usec.isdigit() and int(usec) > 0 and pid in ("", str(os.getpid()))
    return Notifier(address, int(usec) / 1_000_000 if is_ours else None)
