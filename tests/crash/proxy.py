"""A relay between a scheduler and its server that a test can cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 65_536  # bytes


class Proxy:
    """Relays one port of this host to the server, until told otherwise."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self.port = 0
        self.refused = 0  # connections that were hung up on
        self.relay()

    def relay(self) -> None:
        """Let everybody through."""
        self._listen(self._join)

    def hang_up(self) -> None:
        """End all connections; take new ones and end them at once, counted."""
        self._listen(self._refuse)

    def cut(self) -> None:
        """End all connections, and refuse new ones as a host without a server does."""
        with self._lock:
            ended, self._open = self._open, set()
            listener, self._listener = self._listener, None
        for each in [*ended, *([listener] if listener else [])]:
            _end(each)

    def _listen(self, answer: Callable[[socket.socket], None]) -> None:
        self.cut()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen()
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener, answer), daemon=True).start()

    def _accept(self, listener: socket.socket, answer: Callable[[socket.socket], None]) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = listener.accept()
                answer(client)

    def _refuse(self, client: socket.socket) -> None:
        self.refused += 1
        _end(client)

    def _join(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._server)
        except OSError:
            _end(client)
            return
        with self._lock:
            self._open |= {client, server}
        for source, target in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                target.sendall(data)
        with self._lock:
            self._open -= {source, target}
        _end(source)
        _end(target)


def _end(connection: socket.socket) -> None:
    # shutdown wakes a thread that waits in accept or recv; close alone does not.
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
