"""What happens to the fleet, and what is asked of it, while it works."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from django_helisched import scheduler
from django_helisched.exceptions import Busy
from tests.chaos import jobs as bodies
from tests.chaos.story import LEASE

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from django_helisched.functions import JobFunction
    from tests.chaos.crew import Crew
    from tests.chaos.story import Story

LOOK_EVERY = 0.02  # seconds between two looks at what is to happen
RECENT = 200  # jobs among which an operator picks

# Most are short; some outlast their lease, twice.
SECONDS = [0, 0, 0, 0.05, 0.3, 1, LEASE * 1.5, LEASE * 2.2]

BODIES: list[JobFunction[[float, str], Any]] = [
    bodies.enter,
    bodies.enter,
    bodies.tell,
    bodies.tell_async,
    bodies.tell_once,
]


class Storm:
    """Everything that happens, each thing at times of its own, drawn from one seed."""

    def __init__(self, crew: Crew, rng: random.Random, story: Story) -> None:
        self._crew = crew
        self._rng = rng
        self._story = story
        self._has_one_writer = not connection.features.has_select_for_update
        uniform = rng.uniform
        # Each with the mean of the seconds between two times.
        self._forces: list[tuple[float, Callable[[], object]]] = [
            (0.15, self._enqueue),
            (1, crew.kill),
            (4, lambda: crew.stop(uniform(1.2 * LEASE, 3 * LEASE))),
            (6, crew.drain),
            (30, self._kill_all),
            (0.4, self._cancel),
            (0.4, self._requeue),
        ]

    def rage(self, seconds: float) -> None:
        """Let it all happen for so long."""
        never, end = threading.Event(), time.monotonic() + seconds
        due = [(time.monotonic() + self._pause(mean), mean, force) for mean, force in self._forces]
        while (now := time.monotonic()) < end:
            for place, (at, mean, force) in enumerate(due):
                if now >= at:
                    force()
                    due[place] = (time.monotonic() + self._pause(mean), mean, force)
            self._crew.look()
            never.wait(LOOK_EVERY)

    def _pause(self, mean: float) -> float:
        return self._rng.expovariate(1 / mean)

    def _kill_all(self) -> None:
        self._crew.kill_all(self._rng.uniform(0.5, 3))

    def _enqueue(self) -> None:
        body = self._rng.choice(BODIES)
        seconds = self._rng.choice(SECONDS)
        if body is bodies.enter and self._has_one_writer and self._rng.random() < 0.9:
            # While a mutation runs on SQLite nothing else can happen.
            seconds = min(seconds, 0.05)
        call = partial(
            body.using(on_complete=bodies.ended, context="c").enqueue, seconds, self._rng.choice(bodies.FATES)
        )
        if self._rng.random() < 0.1:
            self._roll_back(call)
        else:
            self._story.enqueued.append(call().pk)

    def _roll_back(self, call: Callable[[], Any]) -> None:
        with transaction.atomic():
            self._story.rolled_back.append(call().pk)
            transaction.set_rollback(True)

    def _cancel(self) -> None:
        self._operate(lambda job_id: scheduler.cancel(job_id, force=self._rng.random() < 0.3), "cancels")

    def _requeue(self) -> None:
        job_id = self._operate(scheduler.requeue, "requeues")
        if job_id is not None:
            self._story.requeued[job_id] += 1

    def _operate(self, verb: Callable[[Any], bool], what: str) -> Any:
        """Return the job that the verb has changed."""
        if not self._story.enqueued:
            return None
        job_id = self._rng.choice(self._story.enqueued[-RECENT:])
        try:
            changed = verb(job_id)
        except Busy:
            self._story.counts["busy"] += 1
            return None
        self._story.counts[what] += changed
        return job_id if changed else None
