"""Every exception of the package, in one tree.

HelischedError
├── InvalidArguments (TypeError)        a call that the function cannot take
├── InvalidFunction (TypeError)         a function that cannot be registered
├── UnknownFunction (LookupError)       a path that no registered function has
├── InvalidOption (ValueError)          an option with a value out of its range
├── NotMigrated                         the tables are missing
├── Busy                                an operator's verb waited for a lock in vain
├── StillRunning                        a cron whose jobs may not overlap has one already
├── BatchClosed                         a batch that takes no more jobs from here
├── LeaseLost                           the running job is no longer this worker's
├── JobCanceled                         raised by ``raise_if_canceled()``
├── JobEnded                            the context of a job that has ended was used
├── RetryLater                          raise it in a job to choose the delay
└── NonRetryable                        raise it in a job to fail at once
"""

from __future__ import annotations

from datetime import timedelta


class HelischedError(Exception):
    """The root of every exception that this package defines."""


class InvalidArguments(HelischedError, TypeError):
    """The arguments do not fit the function, or cannot be stored as JSON."""


class InvalidFunction(HelischedError, TypeError):
    """The function cannot be registered as a job."""


class UnknownFunction(HelischedError, LookupError):
    """No registered function has this path or alias."""


class InvalidOption(HelischedError, ValueError):
    """An option has a value outside its range."""


class NotMigrated(HelischedError):
    """The tables of the app are missing from the database."""


class Busy(HelischedError):
    """Another transaction held the row for longer than an operator's verb waits."""


class StillRunning(HelischedError):
    """A cron with ``overlap="skip"`` was to run now while a job of it is pending or in progress."""


class BatchClosed(HelischedError):
    """The batch is closed, complete or gone; only its own running jobs may add to a closed one."""


class LeaseLost(HelischedError):
    """The running job's lease belongs to another attempt now: nothing was stored."""


class JobCanceled(HelischedError):
    """Somebody asked the running job to stop."""


class JobEnded(HelischedError):
    """The context belongs to a job that has already ended."""


class RetryLater(HelischedError):
    """End this attempt and run the job again after ``delay``.

    ``delay`` is a timedelta or a number of seconds, zero or more. With
    ``count=False`` the attempt is a snooze: it spends no budget.
    """

    def __init__(self, delay: timedelta | float, *, count: bool = True) -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else float(delay)
        if not 0 <= seconds <= timedelta.max.total_seconds():
            raise InvalidOption(f"RetryLater({delay!r}): the delay must be zero or more seconds.")
        super().__init__(f"retry in {seconds:g} s")
        self.delay = timedelta(seconds=seconds)
        self.count = count


class NonRetryable(HelischedError):
    """Fail the job at once, whatever budget is left."""
