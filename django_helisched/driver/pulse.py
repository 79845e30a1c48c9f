"""Show a status to whoever asked for it: probes, a file, systemd, the supervisor."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from django.core.exceptions import ImproperlyConfigured

from django_helisched.driver.notify import notifier
from django_helisched.driver.probes import answering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from django_helisched.driver.vitals import Status

logger = logging.getLogger("django_helisched.driver")

BEAT = 1.0  # seconds between two looks


class Sink(Protocol):
    """Whoever is shown the status at every beat, and told when that ends."""

    def __call__(self, status: Status) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Where a status is shown: a port for probes, a file. systemd says in the environment that it wants it."""

    port: int | None = None
    host: str = "127.0.0.1"
    file: Path | None = None


NOWHERE = Shown()


@contextmanager
def showing(status: Callable[[], Status], where: Shown, more: Sequence[Sink] = ()) -> Iterator[None]:
    """Show the status inside the block. Raises ImproperlyConfigured for a port or file that cannot be had."""
    with ExitStack() as stack:
        if where.port is not None:
            port = stack.enter_context(answering(where.host, where.port, status))
            logger.info("Probes: http://%s:%s/live and /ready", where.host, port)
        sinks = list(more)
        if where.file is not None:
            sinks.append(HealthFile(where.file))
        manager = notifier()
        if manager is not None:
            sinks.append(manager)
        if sinks:
            watchdog = None if manager is None else manager.watchdog
            stack.enter_context(_beating(status, sinks, BEAT if watchdog is None else min(BEAT, watchdog / 2)))
        yield


class HealthFile:
    """A file that is written anew at every beat while the loops move, and is gone when the process ends well.

    It is replaced as a whole: a reader finds the old one or the new one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fresh = path.with_name(f".{path.name}.new")
        try:
            self._fresh.write_text("")
        except OSError as error:
            raise ImproperlyConfigured(f"--health-file {path} cannot be written: {error.strerror}.") from error

    def __call__(self, status: Status) -> None:
        if status.is_live:
            with suppress(OSError):  # a full disk is not worth a job; the file grows old
                self._fresh.write_text(json.dumps(status.facts()) + "\n")
                self._fresh.replace(self._path)

    def close(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
            self._fresh.unlink(missing_ok=True)


@contextmanager
def _beating(status: Callable[[], Status], sinks: Sequence[Sink], every: float) -> Iterator[None]:
    over = threading.Event()

    def beat() -> None:
        now = status()
        for sink in sinks:
            sink(now)

    def run() -> None:
        while not over.wait(every):
            try:
                beat()
            except Exception:
                logger.exception("The status could not be shown; the next beat tries again.")

    beat()
    thread = threading.Thread(target=run, name="helisched-pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=every)
        with suppress(Exception):
            beat()
        for sink in sinks:
            sink.close()
