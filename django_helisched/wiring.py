"""Which stores and which clock this process uses, and whom an enqueue and a cancel reach.

Made at first use from HELISCHED["DATABASE"], forgotten when the setting
changes. ``replaced`` puts others in their place for a test.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from django.core.signals import setting_changed
from django.db.backends.signals import connection_created

from django_helisched import conf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

    from django_helisched.stores.base import CronStore, JobStore
    from django_helisched.stores.clock import Clock
    from django_helisched.stores.orm import Herald


class _Wires:
    """What this process uses now; None until the first use."""

    lock = threading.Lock()
    jobs: JobStore | None = None
    crons: CronStore | None = None
    shared: tuple[str, Clock, _Teller] | None = None  # what both are made with: the alias, and whom they tell
    clock: Clock | None = None  # of the stores that were made last
    listeners: ClassVar[set[Callable[[], None]]] = set()
    cancelers: ClassVar[set[Callable[[], None]]] = set()


def job_store() -> JobStore:
    """Return the job store of this process."""
    store = _Wires.jobs
    if store is None:
        with _Wires.lock:
            store = _Wires.jobs = _Wires.jobs or _made_jobs(*_shared())
    return store


def cron_store() -> CronStore:
    """Return the cron store of this process."""
    store = _Wires.crons
    if store is None:
        with _Wires.lock:
            store = _Wires.crons = _Wires.crons or _made_crons(*_shared())
    return store


def _shared() -> tuple[str, Clock, _Teller]:
    if _Wires.shared is None:
        _Wires.shared = _made_shared()
    return _Wires.shared


def _made_shared(clock: Clock | None = None) -> tuple[str, Clock, _Teller]:
    from django_helisched.stores.orm import Herald, channel_of, database_clock

    alias = conf.get_settings().database
    clock = _Wires.clock = clock or database_clock(alias)
    return alias, clock, _Teller(Herald(channel_of(alias)))


def _made_jobs(alias: str, clock: Clock, teller: _Teller) -> JobStore:
    # Half of all modules: a process that enqueues nothing does without.
    from django_helisched.stores.orm import OrmJobStore

    return OrmJobStore(alias, clock, teller=teller)


def _made_crons(alias: str, clock: Clock, teller: _Teller) -> CronStore:
    # Most of the other half: one that has nothing to do with crons does without.
    from django_helisched.stores.orm import OrmCronStore

    return OrmCronStore(alias, clock, teller=teller)


class _Teller:
    """Whom the stores tell after a commit. A driver of this process knows what itself makes due; others do not."""

    def __init__(self, herald: Herald) -> None:
        self.something_is_due = herald.something_is_due
        self._herald = herald

    def something_is_canceled(self) -> None:
        """Let every process hear of a cancel request, this one too."""
        for hurry in tuple(_Wires.cancelers):
            hurry()
        self._herald.something_is_canceled()


@contextmanager
def replaced(
    jobs: JobStore | None = None, crons: CronStore | None = None, *, clock: Clock | None = None
) -> Iterator[None]:
    """Use these stores, or this clock with the database's own, inside the block."""
    before = _Wires.jobs, _Wires.crons, _Wires.shared, _Wires.clock
    _Wires.jobs, _Wires.crons, _Wires.shared = jobs, crons, _made_shared(clock)
    try:
        yield
    finally:
        _Wires.jobs, _Wires.crons, _Wires.shared, _Wires.clock = before


def add_listener(wake: Callable[[], None]) -> None:
    """Call ``wake`` after every commit of this process that stored a job."""
    _Wires.listeners.add(wake)


def remove_listener(wake: Callable[[], None]) -> None:
    """Stop calling ``wake``."""
    _Wires.listeners.discard(wake)


def add_canceler(hurry: Callable[[], None]) -> None:
    """Call ``hurry`` after every commit of this process that canceled something."""
    _Wires.cancelers.add(hurry)


def remove_canceler(hurry: Callable[[], None]) -> None:
    """Stop calling ``hurry``."""
    _Wires.cancelers.discard(hurry)


def wake_on_commit() -> None:
    """Wake this process's drivers once the open transaction commits; one hook is enough for many jobs."""
    if _Wires.listeners:
        job_store().on_commit(_wake)


def _wake() -> None:
    for wake in tuple(_Wires.listeners):
        wake()


def _read_anew(*, connection: BaseDatabaseWrapper, **_: object) -> None:
    """Let a process with a driver read the time anew with each connection: another server may tell it now.

    A web process may open one for each request; it carries its reading on.
    """
    clock = _Wires.clock
    if _Wires.listeners and clock is not None and connection.alias == conf.get_settings().database:
        clock.resync()


def _forget(*, setting: str, **_: object) -> None:
    if setting in {"HELISCHED", "DATABASES"}:
        _Wires.jobs = _Wires.crons = _Wires.shared = None


setting_changed.connect(_forget, dispatch_uid="django_helisched.wiring")
connection_created.connect(_read_anew, dispatch_uid="django_helisched.wiring")
