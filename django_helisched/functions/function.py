"""JobFunction: a plain function that can also be enqueued."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from asgiref.sync import sync_to_async

from django_helisched import context
from django_helisched.functions.options import NO_OPTIONS, Chosen
from django_helisched.functions.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from django_helisched.conf import Settings
    from django_helisched.functions.call import Call
    from django_helisched.functions.options import Duration
    from django_helisched.jobs.backoff import Backoff
    from django_helisched.jobs.job import Kind, NewJob
    from django_helisched.jobs.limit import Limit
    from django_helisched.models import Job

P = ParamSpec("P")
R = TypeVar("R")


class _Calls:
    """The names of functions.call: many processes declare functions, and enqueue nothing."""

    enqueue_call: Callable[[Call], Job]
    new_call: type[Call]

    def __getattr__(self, name: str) -> Any:
        from django_helisched.functions import call

        # Kept, so that only the first use of a name comes here.
        value = self.__dict__[name] = getattr(call, name)
        return value


_calls = _Calls()


class JobFunction(Generic[P, R]):
    """A registered function. Call it and it runs here and now; enqueue it and a driver runs it.

    ``path`` is its dotted path, the name under which jobs are stored. The other
    attributes are the defaults of its jobs; None leaves the choice to the settings.
    """

    def __init__(  # one keyword for each thing a function may declare
        self,
        func: Callable[P, R],
        *,
        path: str,
        kind: Kind,
        at_most_once: bool = False,
        max_failures: int | None = None,
        timeout: timedelta | None = None,
        queue: str = "default",
        priority: int = 0,
        backoff: Backoff | None = None,
        interruptible: bool = False,
        aliases: tuple[str, ...] = (),
        concurrency: Limit | None = None,
    ) -> None:
        self.func = func
        self.path = path
        self.kind = kind
        self.at_most_once = at_most_once
        self.max_failures = max_failures
        self.timeout = timeout
        self.queue = queue
        self.priority = priority
        self.backoff = backoff
        self.interruptible = interruptible
        self.aliases = aliases
        self.concurrency = concurrency
        self.is_async = inspect.iscoroutinefunction(func)
        self.signature = inspect.signature(func)
        self.shape = Shape(self.signature)
        self.options = NO_OPTIONS
        # What all jobs without options have in common, and the settings under which that holds: see functions.call.
        self.pattern: tuple[Settings, NewJob] | None = None
        update_wrapper(self, func)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body here and now, as any function; nothing is stored.

        Outside a job, ``current_job()`` gives the body an inert context.
        """
        if self.is_async:
            return self.func(*args, **kwargs)
        with context.inline(self.path):
            return self.func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.path}>"

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Store a job that is due now and return it.

        Part of the caller's transaction: the job exists exactly if that commits.
        With a taken idempotency key the older job is returned, unchanged.
        Raises InvalidArguments, InvalidOption or LeaseLost before anything is stored.
        """
        return _calls.enqueue_call(_calls.new_call(self, args, kwargs))

    def run_after(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Store a job that is due ``delay`` (a timedelta or seconds, zero or more) from now; as enqueue."""
        return _calls.enqueue_call(_calls.new_call(self, args, kwargs, run_after=delay))

    def run_at(self, when: datetime, /, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Store a job that is due at the aware instant ``when``; as enqueue. A past one is due now."""
        return _calls.enqueue_call(_calls.new_call(self, args, kwargs, run_at=when))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Enqueue from asynchronous code."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)

    def using(self, **options: Unpack[Chosen]) -> JobFunction[P, R]:
        """Return this function with other options for the jobs it enqueues.

        ``max_failures, name, idempotency_key, unique_until, queue, priority,
        on_complete, context, space, expires_at, parent, batch``; an unknown one is a TypeError.
        """
        unknown = sorted(set(options) - set(Chosen.__annotations__))
        if unknown:
            raise TypeError(
                f'using() got an unknown option "{unknown[0]}" (it takes: {", ".join(Chosen.__annotations__)}).'
            )
        copy: JobFunction[P, R] = object.__new__(JobFunction)
        copy.__dict__.update(self.__dict__)
        copy.options = replace(self.options, **options)
        return copy
