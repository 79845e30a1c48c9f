"""Throw-away PostgreSQL servers on free ports of this host: to stop, restart and promote without harm to others."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

OWNER = "postgres"  # who runs a server when root starts it, since the server refuses to be root
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
shared_buffers = 32MB
"""


class Cluster:
    """One server: its data and its port."""

    def __init__(self, name: str) -> None:
        self._room = Path(tempfile.mkdtemp(prefix=f"helisched_{name}_"))
        if getpass.getuser() == "root":
            shutil.chown(self._room, OWNER)
        self._data = self._room / "data"
        self.port = free_port()

    def create(self) -> None:
        """Make an empty server and start it."""
        self._run("initdb", "--pgdata", self._data, "--username", OWNER, "--auth", "trust", "--no-sync")
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        self.start()

    def follow(self, primary: Cluster) -> None:
        """Become a streaming replica of another server, whose commits wait for this one from then on."""
        shutil.rmtree(self._data, ignore_errors=True)
        address = ["--host", "127.0.0.1", "--port", str(primary.port), "--username", OWNER]
        self._run("pg_basebackup", "--pgdata", self._data, "--write-recovery-conf", "--checkpoint=fast", *address)
        self.start()
        primary.configure("synchronous_standby_names", "'*'")

    def configure(self, name: str, value: str) -> None:
        """Change one setting of the running server."""
        self.sql(f"ALTER SYSTEM SET {name} = {value}")
        self.sql("SELECT pg_reload_conf()")

    def start(self) -> None:
        """Start, and return when it answers."""
        log = self._room / "log"
        self._run("pg_ctl", "start", "--wait", "--pgdata", self._data, "--log", log, "--options", f"-p {self.port}")

    def stop(self, mode: str) -> None:
        """Stop; "immediate" as a crash does."""
        self._run("pg_ctl", "stop", "--wait", "--pgdata", self._data, "--mode", mode)

    def promote(self) -> None:
        """Turn a replica into a primary, and return when it takes writes."""
        self._run("pg_ctl", "promote", "--wait", "--pgdata", self._data)

    def sql(self, statement: str) -> Any:
        """Return the first value of a statement."""
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, user=OWNER, dbname="postgres", autocommit=True
        ) as connection:
            # A session may be read-only by default, and must be able to say otherwise.
            connection.execute("SET default_transaction_read_only = off")
            cursor = connection.execute(statement)
            row = cursor.fetchone() if cursor.description else None
            return None if row is None else row[0]

    def remove(self) -> None:
        """Stop, and leave nothing behind."""
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self._room, ignore_errors=True)

    def _run(self, program: str, *arguments: Any) -> None:
        command = [str(_folder() / program), *map(str, arguments)]
        if getpass.getuser() == "root":
            command = ["runuser", "-u", OWNER, "--", *command]
        # A server that is started inherits no pipe: the parent would wait for its end.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=self._room, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}; see {self._room}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _folder() -> Path:
    """Return where the server's programs are: newest first of Debian's places, else on the path."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda found: int(found.parts[4]))
    on_path = shutil.which("initdb")
    if not debian and on_path is None:
        raise RuntimeError(
            "No PostgreSQL server is installed here: neither /usr/lib/postgresql nor initdb on the path."
        )
    return debian[-1].parent if debian else Path(str(on_path)).parent
