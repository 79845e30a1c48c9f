"""One peer on one database: its environment, its fresh databases, its child and its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environments import HOME, ROOT, python_of
from benchmarks.peers import peer_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE = 15.0  # seconds that a worker may take to stop


class PeerFailed(Exception):
    """The peer's own code raised, or its worker ended by itself."""


class Stage:
    """Where runs of one peer on one database take place."""

    def __init__(self, peer: str, database: str) -> None:
        self.key = peer
        self.peer = peer_named(peer)
        self.database = database
        self._python = python_of(self.peer)
        self._scratch = Path(tempfile.mkdtemp(prefix="helisched_bench_"))
        self._template = self._place("template")
        self._is_prepared = False
        self.marks = self._scratch / "marks"
        self.log = HOME / "logs" / f"{peer}-{database}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")

    @contextmanager
    def run(self, *, seats: int = 1) -> Iterator[Run]:
        """Give a run: a fresh database with the peer's tables, and a child connected to it."""
        if not self._is_prepared:
            with self.child(self._template) as child:
                child.ask("create")
            self._is_prepared = True
        self.marks.unlink(missing_ok=True)
        name = self._place("run")
        with self.child(name, seats=seats) as child:
            child.ask("copy", template=self._template)
            run = Run(self, child, name, seats)
            try:
                yield run
            finally:
                run.stop()
                child.ask("drop")

    def close(self) -> None:
        """Remove what the runs have left."""
        if self._is_prepared:
            with self.child(self._template) as child:
                child.ask("drop")
        for file in self._scratch.iterdir():
            file.unlink()
        self._scratch.rmdir()

    @contextmanager
    def child(self, name: str, *, seats: int = 1) -> Iterator[Child]:
        """Give a child on the database ``name``; its errors go to the log."""
        with self.log.open("a") as log:
            process = self.start(["-m", "benchmarks.child"], name, seats, log, pipes=True)
            try:
                yield Child(process)
            finally:
                if process.stdin is not None:
                    process.stdin.close()
                _end(process)

    def start(
        self, arguments: Sequence[str], name: str, seats: int, log: Any, *, pipes: bool = False, port: int | None = None
    ) -> subprocess.Popen[str]:
        """Start the peer's python with ``arguments`` on the database ``name``."""
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "BENCH_PEER": self.key,
            "BENCH_DB": self.database,
            "BENCH_NAME": name,
            "BENCH_SEATS": str(seats),
            "BENCH_MARKS": str(self.marks),
            # The counter reads what passes.
            **({"BENCH_PORT": str(port), "PGSSLMODE": "disable"} if port else {}),
        }
        return subprocess.Popen(
            [str(self._python), *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipes else log,
            stderr=log,
            text=True,
            start_new_session=True,
        )

    def tail(self) -> str:
        """Return the end of the log, for an error to show."""
        return "\n".join(self.log.read_text().splitlines()[-15:])

    def _place(self, purpose: str) -> str:
        name = f"helisched_bench_{os.getpid()}_{self.key}_{purpose}"
        return str(self._scratch / f"{name}.sqlite3") if self.database == "sqlite" else name


class Child:
    """The process that calls the peer's code: one question, one answer."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, verb: str, **order: Any) -> dict[str, Any]:
        """Return the answer; raise PeerFailed with the error that the peer's code has raised."""
        if self._process.stdin is None or self._process.stdout is None:
            raise PeerFailed("the child has no pipes")
        try:
            self._process.stdin.write(json.dumps({"do": verb, **order}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(f"the child ended before it was asked to {verb}") from None
        line = self._process.stdout.readline()
        if not line:
            raise PeerFailed(f"the child ended while it was asked to {verb}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(f"{verb}: {answer['error']}")
        return answer


class Run:
    """One measurement's database, child and workers."""

    def __init__(self, stage: Stage, child: Child, name: str, seats: int) -> None:
        self.stage = stage
        self.peer = stage.peer
        self.marks = stage.marks
        self.ask = child.ask
        self._name = name
        self._seats = seats
        self._workers: list[subprocess.Popen[str]] = []

    def start_workers(self, count: int = 1, *, asynchronous: bool = False, port: int | None = None) -> list[int]:
        """Start worker processes as the peer's docs say, and return their pids."""
        start = self.peer.asynchronous_worker if asynchronous else self.peer.worker
        with self.stage.log.open("a") as log:
            for _ in range(count):
                process = self.stage.start(start(self._seats), self._name, self._seats, log, port=port)
                self._workers.append(process)
        return [worker.pid for worker in self._workers]

    def stop(self) -> None:
        """Ask the workers to stop, and end what does not."""
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            _end(worker)
        self._workers.clear()


def _end(process: subprocess.Popen[str]) -> None:
    """Wait for the process, then end whatever is left of the session it was started in."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
