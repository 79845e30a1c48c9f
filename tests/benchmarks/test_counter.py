from __future__ import annotations

import socket
import threading

import pytest

from benchmarks.counter import Counter


@pytest.fixture
def server():
    """Give a server that keeps what it is sent, and answers each message with its kind."""
    listening = socket.create_server(("127.0.0.1", 0))
    yield listening
    listening.close()


def test_every_query_and_every_execute_is_a_statement_and_all_of_it_passes(server):
    counter, received = Counter(*server.getsockname()), []
    sent = startup() + message("Q", b"BEGIN\0") + message("P", b"x") + message("B", b"y") + message("E", b"z")
    reader = threading.Thread(target=lambda: received.append(read(server, len(sent))), daemon=True)
    reader.start()
    with socket.create_connection(("127.0.0.1", counter.port)) as client:
        # In pieces that are no messages.
        client.sendall(sent[:11])
        client.sendall(sent[11:])
        assert client.recv(3) == b"got"
    # The server learns that the client has gone.
    reader.join(10)
    assert received == [sent]
    assert counter.count == 2
    counter.close()


def test_encryption_is_declined_so_that_the_statements_can_be_read(server):
    counter = Counter(*server.getsockname())
    with socket.create_connection(("127.0.0.1", counter.port)) as client:
        client.sendall((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"))
        assert client.recv(1) == b"N"
    assert counter.count == 0
    counter.close()


def startup():
    return (12).to_bytes(4, "big") + (196608).to_bytes(4, "big") + b"abc\0"


def message(kind, body):
    return kind.encode() + (len(body) + 4).to_bytes(4, "big") + body


def read(server, length):
    accepted, _ = server.accept()
    with accepted:
        data = b""
        while len(data) < length:
            data += accepted.recv(length - len(data))
        accepted.sendall(b"got")
        accepted.recv(1)
        return data
