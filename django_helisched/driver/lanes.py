"""The threads in which the asyncio jobs of one process use the ORM.

Django's asynchronous ORM runs its queries in a thread: the one that asgiref
finds for the context of the caller. Each job is dealt one of a few such lanes,
so that there are at most that many connections, however many jobs wait.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

from django_helisched.driver import connections

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


class Lane(Executor):
    """One thread that runs one call at a time, on connections that are usable before it and in order after it.

    It begins with the first call. A daemon: a second signal does not wait for it.
    """

    def __init__(self, alias: str, name: str) -> None:
        self._alias = alias
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._jobs = 0
        # asgiref looks up the thread of a caller by this object; a job that has it in its context runs here.
        self._context = ThreadSensitiveContext()
        SyncToAsync.context_to_thread_executor[self._context] = self

    def enter(self) -> None:
        """Let the thread-sensitive code of the present context run here. Called by the job's own task."""
        self._jobs += 1
        SyncToAsync.thread_sensitive_context.set(self._context)

    def leave(self) -> None:
        """Note that a job has ended: what only jobs at work may keep open is closed after the last of them."""
        self._jobs -= 1
        if self._jobs == 0 and self._thread is not None:
            self._calls.put(partial(connections.tidy_after, self._alias))

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run a call after those before it."""
        future: Future[R] = Future()
        if self._thread is None:
            self._calls = SimpleQueue()
            self._thread = threading.Thread(target=self._run, args=(self._calls,), name=self._name, daemon=True)
            self._thread.start()
        self._calls.put(partial(self._call, future, partial(fn, *args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Let the thread end once it has done what it was given; a later call begins another one."""
        del wait, cancel_futures
        self._calls.put(None)
        self._thread = None

    def _call(self, future: Future[Any], call: Callable[[], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            with connections.shared(self._alias):
                value = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(value)

    def _run(self, calls: SimpleQueue[Callable[[], None] | None]) -> None:
        try:
            while (call := calls.get()) is not None:
                call()
        finally:
            connections.drop_all()


class Lanes:
    """All lanes of a process, dealt in turn."""

    def __init__(self, alias: str, count: int) -> None:
        self._lanes = [Lane(alias, f"helisched-orm-{number}") for number in range(1, count + 1)]
        self._turns = itertools.cycle(self._lanes)

    def next(self) -> Lane:
        """Return the lane whose turn it is."""
        return next(self._turns)

    def close(self) -> None:
        """Let every lane end."""
        for lane in self._lanes:
            lane.shutdown()
