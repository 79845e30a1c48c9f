"""Run the body of one job that nothing can stop: no time limit, no interruption, no event loop.

Most jobs are such, and the short ones among them are made of what is around their bodies.
"""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any

from django_helisched.context import entered
from django_helisched.driver.body import Ran, context_of, refuse_coroutine
from django_helisched.driver.endings import ending_of_error, ending_of_value

if TYPE_CHECKING:
    from django_helisched.driver.held import Held
    from django_helisched.functions import JobFunction

# Nothing is left of most bodies, and what tells so can be shared.
_NOTHING = Ran(ending=ending_of_value(None, 0))


def is_plain(function: JobFunction[Any, Any], held: Held) -> bool:
    """Tell whether a body ends when it likes, so that it can be neither stopped nor abandoned."""
    return held.claim.timeout is None and not (function.interruptible or function.is_async)


def run_plain(function: JobFunction[Any, Any], held: Held, max_result_bytes: int) -> Ran:
    """Return how the body ended, as ``Body.run`` does."""
    return Context().run(_run, function, held, max_result_bytes)


def _run(function: JobFunction[Any, Any], held: Held, max_result_bytes: int) -> Ran:
    claim = held.claim
    try:
        with entered(context_of(held)):
            value = function.func(*claim.args, **claim.kwargs)
            if value is not None:
                refuse_coroutine(function, value)
    except BaseException as error:
        return Ran(ending=ending_of_error(error, stop_requested=held.must_stop), error=error)
    return _NOTHING if value is None else Ran(ending=ending_of_value(value, max_result_bytes))
