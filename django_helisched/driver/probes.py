"""Answer GET /live and GET /ready, for orchestrators. Never a query: a database that hangs must not hang a probe."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_helisched.driver.vitals import Status

_PATIENCE = 5  # seconds for a client to say what it wants


@contextmanager
def answering(host: str, port: int, status: Callable[[], Status]) -> Iterator[int]:
    """Answer probes inside the block, and give the port, which the system chooses for 0.

    Raises ImproperlyConfigured where the address cannot be had.
    """
    try:
        server = _server(host, port, status)
    except OSError as error:
        raise ImproperlyConfigured(
            f"--health-port {port} on {host} cannot be opened: {error.strerror or error}."
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="helisched-probes", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _server(host: str, port: int, status: Callable[[], Status]) -> ThreadingTCPServer:
    class Probe(_Probe):
        ask = staticmethod(status)

    class Server(ThreadingTCPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False

    return Server((host, port), Probe)


class _Probe(BaseHTTPRequestHandler):
    ask: Callable[[], Status]
    timeout = _PATIENCE
    server_version = "helisched"
    sys_version = ""

    def do_GET(self) -> None:
        status = self.ask()
        holds = {"/live": status.is_live, "/ready": status.is_ready}.get(self.path.partition("?")[0])
        if holds is None:
            self._answer(404, {"error": "Ask for /live or /ready."})
        else:
            self._answer(200 if holds else 503, status.facts())

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, code: int, facts: dict[str, Any]) -> None:
        body = (json.dumps(facts) + "\n").encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: a probe comes every few seconds."""
