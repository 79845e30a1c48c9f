"""A proxy between one worker and PostgreSQL that counts the statements it sends.

Every Query and every Execute message is one, BEGIN and COMMIT too: whatever
needs an answer of the server. It needs no setting of the server, and counts
alike for every driver.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

SSL_REQUESTS = {80877103, 80877104}  # SSL and GSS encryption: answered with no
STATEMENTS = {ord("Q"), ord("E")}


class Counter:
    """Listens on a port of its own and passes everything on to ``host:port``."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._lock = threading.Lock()
        self._count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def count(self) -> int:
        """Return how many statements have passed."""
        with self._lock:
            return self._count

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(self._server)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()
        with client, server, suppress(OSError):
            self._read(client, server)
            # To close it would not wake the thread that reads it.
            server.shutdown(socket.SHUT_RDWR)

    def _read(self, client: socket.socket, server: socket.socket) -> None:
        stream = client.makefile("rb")
        while (length := _number(stream.read(4))) is not None:
            body = stream.read(length - 4)
            if _number(body[:4]) in SSL_REQUESTS:
                client.sendall(b"N")
                continue
            server.sendall(length.to_bytes(4, "big") + body)
            break
        while kind := stream.read(1):
            head = stream.read(4)
            length = _number(head) or 4
            if kind[0] in STATEMENTS:
                with self._lock:
                    self._count += 1
            server.sendall(kind + head + stream.read(length - 4))


def _number(data: bytes) -> int | None:
    return int.from_bytes(data, "big") if len(data) == 4 else None


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
