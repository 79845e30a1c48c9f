"""What one driver process is told: its name, its queues, its seats, its paces."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django_helisched import conf
from django_helisched.jobs.backoff import DEFAULT_BACKOFF, Backoff
from django_helisched.jobs.retention import DEFAULT_RETENTION, Retention
from django_helisched.scheduler import pruning
from django_helisched.stores.base import EVERY_QUEUE, QueueFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKER_ID_LENGTH = 128  # as Worker.id and Job.lease_holder hold
_TOKEN_BYTES = 4  # enough to tell one start from the next on the same host and pid


def new_worker_id(prefix: str = "") -> str:
    """Return an id that no other start of a process has: ``prefix`` or host and pid, and a random token.

    A pod that restarts has the same host name and pid 1, and a given prefix is
    the same every time; only the token tells that the old process is gone.
    """
    token = secrets.token_hex(_TOKEN_BYTES)
    prefix = prefix or f"{socket.gethostname()}:{os.getpid()}"
    return f"{prefix[: WORKER_ID_LENGTH - len(token) - 1]}:{token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverConfig:
    """The paces and bounds of one driver.

    ``poll_min`` and ``poll_max`` bound the wait between two looks, ``poll_net``
    is the longest one while other processes tell of what they store.
    """

    worker_id: str = field(default_factory=new_worker_id)
    database: str = "default"
    queues: QueueFilter = EVERY_QUEUE
    threads: int = 4
    async_jobs: int = 100
    async_orm: int = 8
    fire_crons: bool = True
    max_tasks: int | None = None  # stop after so many jobs were started
    lease: timedelta = timedelta(seconds=30)
    sweep: timedelta = timedelta(seconds=30)
    poll_min: timedelta = timedelta(seconds=0.05)
    poll_max: timedelta = timedelta(seconds=1)
    poll_net: timedelta = timedelta(seconds=30)
    backoff: Backoff = DEFAULT_BACKOFF
    max_losses: int = 5
    catchup_cap: int = 1000
    misfire_grace: timedelta = timedelta(seconds=60)
    unknown_grace: timedelta = timedelta(days=1)
    retention: Retention | None = DEFAULT_RETENTION  # None: this driver deletes nothing
    max_result_bytes: int = 1024 * 1024
    max_failures: int = 3  # of cron jobs whose function is unknown here
    timeout_grace: timedelta = timedelta(seconds=10)  # a body that still runs so long after it was stopped is left
    timeout: timedelta | None = None  # of cron jobs whose function declares none
    app_version: str = ""
    job_log_level: int | None = logging.INFO  # of what jobs log; None keeps nothing


def configured(**given: Any) -> DriverConfig:
    """Return the settings as a driver's config, with what is ``given`` (and not None) in their place.

    ``interval`` is the longest wait between two looks. Raises
    ImproperlyConfigured where a setting has a bad value.
    """
    settings = conf.get_settings()
    known: dict[str, Any] = {
        "database": settings.database,
        "threads": settings.threads,
        "async_jobs": settings.async_jobs,
        "async_orm": settings.async_orm,
        "lease": settings.lease,
        "sweep": settings.sweep,
        "backoff": Backoff(**asdict(settings.backoff)),
        "max_failures": settings.max_failures,
        "max_losses": settings.max_losses,
        "catchup_cap": settings.catchup_cap,
        "misfire_grace": settings.misfire_grace,
        "unknown_grace": settings.unknown_grace,
        "retention": pruning.configured(),
        "max_result_bytes": settings.max_args_bytes,
        "timeout": settings.timeout,
        "timeout_grace": settings.timeout_grace,
        "app_version": settings.app_version,
        "job_log_level": settings.job_log_level,
    }
    interval: timedelta | None = given.pop("interval", None)
    poll_max = settings.poll.max if interval is None else interval
    known |= {"poll_max": poll_max, "poll_min": min(settings.poll.min, poll_max)}
    known["poll_net"] = max(poll_max, settings.poll.net) if interval is None else interval
    return DriverConfig(**known | _present(given))


def _present(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}
