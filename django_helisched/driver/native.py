"""Run the body of one asyncio job on the loop that all of them share; nothing it does gets past here."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from django.core.exceptions import SynchronousOnlyOperation

from django_helisched.driver.body import Ran, as_timeout
from django_helisched.driver.deadline import Interrupted, OutOfTime

if TYPE_CHECKING:
    from django_helisched.driver.abandoning import Abandoning
    from django_helisched.driver.async_seats import AsyncSeats
    from django_helisched.driver.body import Body
    from django_helisched.driver.deadline import Stop
    from django_helisched.driver.executor import Begun, Executor
    from django_helisched.driver.farewell import Farewell
    from django_helisched.driver.held import Held
    from django_helisched.driver.lanes import Lane
    from django_helisched.driver.outbox import Outbox

_running: ContextVar[NativeRun | None] = ContextVar("helisched_run", default=None)


class NativeExecutor:
    """What an asyncio seat does with a claim."""

    def __init__(
        self, executor: Executor, abandoning: Abandoning, seats: AsyncSeats, outbox: Outbox, farewell: Farewell
    ) -> None:
        self._executor = executor
        self._abandoning = abandoning
        self._seats = seats
        self._outbox = outbox
        self._farewell = farewell
        self._runs: set[NativeRun] = set()

    def held_by(self, task: asyncio.Task[Any]) -> Held | None:
        """Return the claim for which a task works, its own or one that its body made. For any thread."""
        return next((run.held for run in list(self._runs) if run.is_of(task)), None)

    async def run(self, held: Held, lane: Lane) -> None:
        """Run a claim until its end is handed in, or it was abandoned. Called in a task with a context of its own."""
        lane.enter()
        try:
            begun = await self._begin(held, lane)
            if begun is not None:
                ran = await self._ran(begun)
                if held.conclude():
                    self._outbox.add(self._executor.finish(begun, ran))
        except BaseException as error:
            if not held.is_abandoned:
                self._farewell.unsettled(held, error)
        finally:
            lane.leave()
            if held.is_abandoned:
                self._abandoning.late(held)

    async def _ran(self, begun: Begun) -> Ran:
        task = asyncio.current_task()
        abandon = partial(self._abandoning.abandon_task, self._executor.run_of(begun), task, self._seats)
        run = NativeRun(self._executor.native_body(begun, abandon), begun.held, task)
        self._runs.add(run)
        try:
            return await run.ran()
        finally:
            self._runs.discard(run)

    async def _begin(self, held: Held, lane: Lane) -> Begun | None:
        if not held.must_stop and not held.claim.at_most_once:
            # Now and then the clock has to be read anew; Django keeps that off the loop.
            with suppress(SynchronousOnlyOperation):
                return self._executor.begin(held)
        return await asyncio.get_running_loop().run_in_executor(lane, self._executor.begin, held)


class NativeRun:
    """One run of an async body, in the task that calls it."""

    def __init__(self, body: Body, held: Held, task: asyncio.Task[Any] | None) -> None:
        self._body = body
        self.held = held
        self._loop = asyncio.get_running_loop()
        self._task = task
        self._timer: asyncio.TimerHandle | None = None
        self._is_out_of_time = False
        self._is_stopping = False
        self._is_over = False
        self.tasks: set[asyncio.Task[Any]] = set()

    async def ran(self) -> Ran:
        """Return how the body ended; whatever it raises, SystemExit included, is part of the answer."""
        _running.set(self)
        seconds = self._body.begin()
        if seconds is not None:
            self._timer = self._loop.call_later(seconds, self._stop, OutOfTime)
        try:
            with self._body.entered(), self.held.interruptible(self._interrupt):
                value = await self._body.call()
        except BaseException as error:
            return self._body.raised(as_timeout(error) if self._is_out_of_time else error)
        finally:
            self._leave()
        return self._body.returned(value)

    def is_of(self, task: asyncio.Task[Any]) -> bool:
        """Tell whether a task belongs to this run."""
        return task is self._task or task in self.tasks

    def _interrupt(self) -> None:
        self._loop.call_soon_threadsafe(self._stop, Interrupted)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _stop(self, kind: type[Stop]) -> None:
        """Cancel, and give the body a grace in which to end; told so again it is canceled again, in the same grace."""
        if self._is_over:
            return
        self._cancel()
        if not self._is_stopping:
            self._is_stopping, self._is_out_of_time = True, kind is OutOfTime
            self._give_time(kind)

    def _give_up(self, kind: type[Stop]) -> None:
        """Leave the body behind, and go on canceling it: it may swallow a cancellation, or await what does."""
        self._body.overtime(kind)
        self._cancel()
        self._give_time(kind)

    def _give_time(self, kind: type[Stop]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._body.grace, self._give_up, kind)

    def _leave(self) -> None:
        # No cancellation can come any more: up to the end of the task nothing is awaited.
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self.tasks:
            task.cancel()


def make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """Make a task that ends with the job that makes it: a loop's task factory."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    run = _running.get()
    if run is not None:
        run.tasks.add(task)
        task.add_done_callback(run.tasks.discard)
    return task
