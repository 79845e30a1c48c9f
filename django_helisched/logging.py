"""What a job logs, kept with its attempt; and the job named in every record that it logs."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from django_helisched import context

if TYPE_CHECKING:
    from django_helisched.jobs.job_log import JobLog

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class CurrentJobFilter(logging.Filter):
    """Gives every record ``job_id``, ``job_fn`` and ``job_attempt``, for a formatter to use; outside a job "-"."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, named."""
        job = context.here()
        is_stored = job is not None and job.fence is not None
        record.job_id = str(job.id) if job is not None and is_stored else "-"
        record.job_fn = job.fn_path if job is not None and is_stored else "-"
        record.job_attempt = str(job.attempt) if job is not None and is_stored else "-"
        return True


class JobLogHandler(logging.Handler):
    """Keeps what a running job logs; outside a job it does nothing.

    A driver puts one on the root logger. Name this class in LOGGING to have it
    elsewhere, or with a level, a formatter or filters of your own.
    """

    def __init__(self, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        self.setFormatter(logging.Formatter(_FORMAT))

    def handle(self, record: logging.LogRecord) -> bool:
        """Keep a record that passes the filters.

        Without the handler's lock: an exception that stops a body may land here,
        and would leave it taken for every other job.
        """
        log = _log_of_this_job()
        if log is None:
            return False
        passed: Any = self.filter(record)  # since Python 3.12 also another record
        if passed:
            log.add(self._line(passed if isinstance(passed, logging.LogRecord) else record))
        return bool(passed)

    def _line(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception as error:  # other handlers complain; here it costs one line
            return f"<a record of {record.name} could not be formatted: {type(error).__name__}>"


class _Default(JobLogHandler):
    """The one that a driver installs: nothing else that is logged may sound different because of it."""

    def __init__(self, threshold: int) -> None:
        super().__init__()
        self._threshold = threshold

    def handle(self, record: logging.LogRecord) -> bool:
        """Keep a record; and where no other handler hears it, print it as Python does without any handler."""
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and not self._is_heard(record):
            last.handle(record)
        return record.levelno >= self._threshold and super().handle(record)

    def _is_heard(self, record: logging.LogRecord) -> bool:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


class _Installed:
    """The default handler of this process, for as long as somebody runs jobs."""

    lock = threading.Lock()
    users = 0
    handler: _Default | None = None


def install(level: int | None) -> None:
    """Keep what jobs log from ``level`` on, until ``remove`` was called as often. None: nothing.

    Where LOGGING has a JobLogHandler of its own, that one is left alone to do it.
    """
    with _Installed.lock:
        _Installed.users += 1
        if level is not None and not _is_configured():
            _Installed.handler = _Default(level)
            logging.getLogger().addHandler(_Installed.handler)


def remove() -> None:
    """Undo one ``install``."""
    with _Installed.lock:
        _Installed.users -= 1
        if _Installed.users == 0 and _Installed.handler is not None:
            logging.getLogger().removeHandler(_Installed.handler)
            _Installed.handler = None


def _is_configured() -> bool:
    named = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    return any(isinstance(handler, JobLogHandler) for logger in [logging.root, *named] for handler in logger.handlers)


def _log_of_this_job() -> JobLog | None:
    job = context.here()
    return None if job is None or job.control.ended else job.control.log
