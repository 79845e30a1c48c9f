"""Throw-away jobs that no scheduler can meet.

They are due in a day, and are claimed by a store whose clock is a day ahead.
What a kill leaves behind comes to an end by itself a day later, since nobody
knows its function.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from django_helisched.exceptions import HelischedError
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Kind, NewJob, State
from django_helisched.jobs.outcome import AttemptOutcome, Outcome
from django_helisched.models import Attempt, Job, JobArgs, Progress
from django_helisched.stores.base import CLAIM_LIMIT, QueueFilter, SettleAnswer, Settlement
from django_helisched.stores.orm import OrmJobStore, database_clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from uuid import UUID

    from django_helisched.jobs.job import ClaimedJob

QUEUE = "helisched-bench-"  # what their queue's name begins with; a token follows
FUNCTION = "django_helisched.bench"  # which nobody has registered
AHEAD = timedelta(days=1)
CHUNK = 1000  # jobs of one statement
_LEASE = timedelta(minutes=10)
_DONE = Outcome(state=State.SUCCESS, attempt=AttemptOutcome.SUCCESS)


class _ClockAhead:
    """The database's clock, a day ahead."""

    def __init__(self, alias: str) -> None:
        self._clock = database_clock(alias)

    def now(self) -> datetime:
        return self._clock.now() + AHEAD

    def resync(self) -> None:
        self._clock.resync()


class BenchRows:
    """The rows of one bench, in a queue of their own."""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._store = OrmJobStore(alias, _ClockAhead(alias))
        self._queue = f"{QUEUE}{secrets.token_hex(4)}"
        self._ids: list[UUID] = []

    def store(self, count: int) -> int:
        """Store jobs with one argument, a thousand at once; return the number of transactions."""
        starts = range(0, count, CHUNK)
        for start in starts:
            jobs = [self._job(number) for number in range(start, min(start + CHUNK, count))]
            # Noted first: what is stored is deleted, whatever comes between.
            self._ids += [job.id for job in jobs]
            self._store.enqueue(jobs)
        return len(starts)

    def run_actions(self, count: int) -> int:
        """Claim and end so many, 64 at a time; return the number of transactions."""
        commits = 0
        for claims in self._claims(count):
            self._end(claims)
            commits += 2
        return commits

    def run_mutations(self, count: int) -> int:
        """Claim so many, 64 at a time, and end each in its own transaction; return the number of transactions."""
        commits = 0
        for claims in self._claims(count):
            for claim in claims:
                with self._store.atomic():
                    self._end([claim])
            commits += 1 + len(claims)
        return commits

    def delete(self) -> int:
        """Delete every row; return how many jobs there were."""
        deleted = 0
        for start in range(0, len(self._ids), CHUNK):
            ids = self._ids[start : start + CHUNK]
            with transaction.atomic(using=self._alias):
                for model in (Attempt, JobArgs, Progress):
                    model._default_manager.using(self._alias).filter(job_id__in=ids).delete()
                deleted += Job.objects.using(self._alias).filter(pk__in=ids).delete()[0]
        self._ids.clear()
        return deleted

    def _job(self, number: int) -> NewJob:
        now = self._store.now()
        return NewJob(
            id=uuid7(),
            fn_path=FUNCTION,
            kind=Kind.ACTION.value,
            queue=self._queue,
            name="helisched bench",
            created_at=now - AHEAD,
            due_at=now,
            next_run_at=now,
            args=[number],
        )

    def _claims(self, count: int) -> Iterator[list[ClaimedJob]]:
        queues = QueueFilter(include=(self._queue,))
        while count > 0:
            limit = min(count, CLAIM_LIMIT)
            claims = self._store.claim(worker_id=self._queue, limit=limit, lease=_LEASE, queues=queues)
            if not claims:
                raise HelischedError(
                    f"Nothing is left to claim in {self._queue}: somebody has deleted its jobs. Try again."
                )
            count -= len(claims)
            yield claims

    def _end(self, claims: list[ClaimedJob]) -> None:
        now = self._store.now()
        answers = self._store.settle([Settlement(claim=claim, outcome=_DONE, started_at=now) for claim in claims])
        if set(answers) != {SettleAnswer.DONE}:
            raise HelischedError(f"Somebody else has ended jobs of {self._queue}. Try again.")
