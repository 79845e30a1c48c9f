"""Stop a plain function, at its deadline or on request, by an exception that lands in it and nowhere else.

CPython can raise an exception in another thread, at whatever instruction that
thread has reached. Two things can go wrong, and both do under load:

* The body ends in the same instant. So whoever is first, the guard or the end of
  the body, has won the round; the guard raises only if it has won, and a body
  that ends too late waits, inside this module, until the exception has arrived
  or is withdrawn.
* It lands in a finalizer or a callback, where Python prints and forgets it. So the
  guard raises again, unless the thread is busy handling it.

And one thing would harm all others: to land where Python's logging or import has
taken a lock that the whole process needs. So a thread that is in there is let out first.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from typing import TYPE_CHECKING, TypeVar

from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")

_AGAIN, _LATER_AGAIN = 0.1, 5.0  # seconds between two exceptions, within the grace and after it
_SPIN = 0.001  # seconds between two looks while the exception is on its way, or waits for its moment

# Code that takes locks of the whole process by hand; and how deep below it a thread may be.
_DELICATE = frozenset({logging.__file__, "<frozen importlib._bootstrap>"})
_DEPTH = 30


class Stop(BaseException):
    """Raised inside a body that is to end now. Not an Exception, so that a body's own handlers let it pass."""


class OutOfTime(Stop):
    """The body's time is over."""


class Interrupted(Stop):
    """The job was asked to stop, or is not this worker's any more."""


class Guard:
    """Stops one plain body: after ``seconds`` (None: never), or when it is asked to.

    A call that blocks outside Python ends first and sees the exception then;
    ``overtime`` is called, once and from another thread, with the class of the
    exception, when a body still runs ``grace`` seconds after it.
    """

    def __init__(self, seconds: float | None, overtime: Callable[[type[Stop]], object], grace: float) -> None:
        self._seconds = None if seconds is None else min(seconds, threading.TIMEOUT_MAX)
        self._overtime = overtime
        self._grace = grace
        self._error: type[Stop] = OutOfTime
        self._thread_id = 0
        self._first: dict[int, str] = {}
        self._raised = 0
        self._spin = threading.Lock()
        self._spin.acquire()
        self._begin = threading.Event()
        self._over = threading.Event()

    @property
    def has_raised(self) -> bool:
        """Tell whether an exception was raised in the body, whatever it did with it."""
        return self._raised > 0

    def interrupt(self) -> None:
        """Stop the body now, or as soon as it begins; nothing happens once it has ended."""
        if not self._begin.is_set():
            self._error = Interrupted
            self._begin.set()

    def call(self, body: Callable[[], R]) -> R:
        """Return ``body()``, or raise OutOfTime or Interrupted. What the body itself raises passes unchanged."""
        self._thread_id = threading.get_ident()
        thread = threading.Thread(target=self._run, name="helisched-guard", daemon=True)
        returned: list[R] = []
        # Every exception of ours that can come lands inside: a second one is raised only if the thread
        # was not seen handling the first, and a third one never. What is left lasts undisturbed.
        try:
            try:
                thread.start()
                returned.append(body())
            finally:
                self._call_off()
        except Stop:
            self._call_off()
            if not returned:
                raise
        finally:
            self._call_off()
            self._over.set()
            self._begin.set()
        return returned[0]

    def _call_off(self) -> None:
        """Return once no exception can arrive any more. May be interrupted by one, and called again."""
        # No Event here: the exception could land inside it and leave its lock taken for ever.
        while not self._is_first(self._raised, "body"):
            self._spin.acquire(timeout=_SPIN)
        if self._raised:
            _raise_in(self._thread_id, None)

    def _is_first(self, number: int, who: str) -> bool:
        # setdefault is one step that no other thread and no exception can divide.
        return self._first.setdefault(number, who) == who

    def _run(self) -> None:
        self._begin.wait(self._seconds)
        self._begin.set()
        began, has_told = elapsed(), False
        while not self._over.is_set():
            if not has_told and _is_delicate(self._thread_id) and elapsed() - began < self._grace:
                self._over.wait(_SPIN)
                continue
            if not self._raise_unless_handled():
                return
            if self._over.wait(_LATER_AGAIN if has_told else min(_AGAIN, self._grace)):
                return
            if not has_told and elapsed() - began >= self._grace:
                has_told = True
                self._overtime(self._error)

    def _raise_unless_handled(self) -> bool:
        """Raise in the body's thread; False: the body has ended. A thread that handles it already is let alone."""
        if is_stop(_handled_by(self._thread_id)):
            return True
        if not self._is_first(self._raised, "guard"):
            return False
        _raise_in(self._thread_id, self._error)
        self._raised += 1
        return True


def is_stop(error: BaseException | None, kind: type[Stop] = Stop) -> bool:
    """Tell whether ``error`` is an exception of a guard, or came out of handling it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return True
        seen.add(id(error))
        error = error.__context__
    return False


def _is_delicate(thread_id: int) -> bool:
    """Tell whether a thread is where an exception could leave a lock taken that all threads need."""
    frame = sys._current_frames().get(thread_id)  # noqa: SLF001  # documented, for debugging such as this
    for _ in range(_DEPTH):
        if frame is None:
            return False
        if frame.f_code.co_filename in _DELICATE:
            return True
        frame = frame.f_back
    return False


def _handled_by(thread_id: int) -> BaseException | None:
    """Return the exception that a thread is handling now, in an except or finally block or a context's exit."""
    found = sys._current_exceptions().get(thread_id)  # noqa: SLF001  # documented, for debugging such as this
    # Before Python 3.12 it is what sys.exc_info() returns.
    return found[1] if isinstance(found, tuple) else found


def _raise_in(thread_id: int, error: type[BaseException] | None) -> None:
    """Make ``error`` pending in a thread; None withdraws one that has not arrived."""
    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), raised)
