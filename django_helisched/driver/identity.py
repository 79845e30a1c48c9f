"""Who this process is, for the row by which others see it."""

from __future__ import annotations

import os
import socket
from functools import cached_property
from typing import TYPE_CHECKING

import django_helisched
from django_helisched import functions
from django_helisched.crons.wall_clock import tzdata_version
from django_helisched.stores.base import WorkerReport

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django_helisched.driver.config import DriverConfig

RUNNING, DRAINING, STOPPED = "running", "draining", "stopped"


class Identity:
    """The facts of one driver that its reports repeat; ``state`` and ``declarations`` change."""

    def __init__(self, config: DriverConfig, seats: int, now: Callable[[], datetime]) -> None:
        self.worker_id = config.worker_id
        self.lease = config.lease
        self.state = RUNNING
        self.declarations: tuple[str, ...] = ()
        self._queues = config.queues.patterns
        self._seats = seats
        self._now = now

    @cached_property
    def started_at(self) -> datetime:
        """Return the database's time when it was first asked for: a driver starts without a database, too."""
        return self._now()

    def report(self, in_flight: int) -> WorkerReport:
        """Return what this process says of itself now."""
        return WorkerReport(
            id=self.worker_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self.started_at,
            version=django_helisched.__version__,
            tzdata_version=tzdata_version(),
            functions=tuple(functions.registered()),
            queues=self._queues,
            declarations=self.declarations,
            seats=self._seats,
            in_flight=in_flight,
            state=self.state,
        )
