"""Run one claim to its settlement."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django_helisched import functions
from django_helisched.driver.abandoning import Run
from django_helisched.driver.body import Body, Ran
from django_helisched.driver.connections import OpenTransactions, drop, tidy
from django_helisched.driver.events import What
from django_helisched.driver.mutation import Mutation
from django_helisched.driver.narration import told
from django_helisched.driver.plain_body import is_plain, run_plain
from django_helisched.driver.settling import Finished
from django_helisched.jobs.job import Kind
from django_helisched.jobs.outcome import AttemptOutcome
from django_helisched.jobs.records import maker
from django_helisched.stores.base import SettleAnswer
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from django_helisched.driver.abandoning import Abandoning
    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.deadline import Stop
    from django_helisched.driver.events import Announcer
    from django_helisched.driver.farewell import Farewell
    from django_helisched.driver.held import Held
    from django_helisched.driver.outbox import Outbox
    from django_helisched.driver.patience import Patience
    from django_helisched.driver.settling import Settled, Settler
    from django_helisched.functions import JobFunction
    from django_helisched.jobs.backoff import Backoff
    from django_helisched.stores.base import JobStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A claim whose body may run now; ``began`` is on the clock of ``stores.clock.elapsed()``."""

    held: Held
    function: JobFunction[Any, Any]
    started_at: datetime
    began: float


_begun, _finished = maker(Begun), maker(Finished)


class Executor:
    """What a seat does with a claim."""

    def __init__(
        self,
        jobs: JobStore,
        config: DriverConfig,
        *,
        settler: Settler,
        patience: Patience,
        outbox: Outbox,
        abandoning: Abandoning,
        farewell: Farewell,
        announce: Announcer,
        wrote: Callable[[Sequence[Held]], None],
    ) -> None:
        self._jobs = jobs
        self._config = config
        self._settler = settler
        self._patience = patience
        self._outbox = outbox
        self._abandoning = abandoning
        self._farewell = farewell
        self._announce = announce
        self._wrote = wrote

    def run(self, held: Held) -> None:
        """Run a claim, a mutation to its settlement, an action until its end is handed in; never raises.

        Where the end cannot be written its lease lapses, and a sweep takes the job back.
        """
        try:
            with tidy(self._config.database) as before:
                self._run(held, before)
        except BaseException as error:
            if not held.is_abandoned:
                self._farewell.unsettled(held, error)
        finally:
            if held.is_abandoned:
                self._abandoning.ended(held)

    def _run(self, held: Held, before: OpenTransactions) -> None:
        begun = self.begin(held)
        if begun is None:
            return
        if begun.function.kind is Kind.MUTATION:
            settled = self._run_mutation(begun, before)
            if settled is not None:
                self._farewell.settled(held, settled, elapsed() - begun.began)
                self._wrote([held])
        else:
            finished = self._run_action(begun, before)
            if finished is not None:
                self._outbox.add(finished)

    def begin(self, held: Held) -> Begun | None:
        """Return what is about to run; None where nothing may, which is seen to already. May ask the database."""
        claim = held.claim
        function = functions.find(claim.fn_path)
        if held.must_stop or function is None:
            # Nothing has begun: canceled or lost meanwhile, or its function is gone since the claim.
            self._patience.attempt(held, lambda: self._jobs.release([claim]))
            self._farewell.unbegun(held, What.JOB_RELEASED)
            return None
        if claim.at_most_once and not self._patience.attempt(held, lambda: self._jobs.start(claim)):
            self._farewell.unbegun(held, What.JOB_LOST)
            return None
        started_at = self._now(held)
        if self._announce.is_heard(What.JOB_STARTED):
            self._announce(told(claim, What.JOB_STARTED, started_at=started_at))
        return _begun(held=held, function=function, started_at=started_at, began=elapsed())

    def native_body(self, begun: Begun, overtime: Callable[[type[Stop]], object]) -> Body:
        """Return the body of what has begun on the event loop, and what is to happen when it does not end in time."""
        return Body(
            begun.function,
            begun.held,
            max_result_bytes=self._config.max_result_bytes,
            grace=self._config.timeout_grace,
            around=nullcontext,
            overtime=overtime,
        )

    def body(self, begun: Begun) -> Body:
        """Return the body of what has begun, ready to run."""
        run = self.run_of(begun)
        return Body(
            begun.function,
            begun.held,
            max_result_bytes=self._config.max_result_bytes,
            grace=self._config.timeout_grace,
            around=run.around,
            overtime=partial(self._abandoning.abandon, run),
        )

    def run_of(self, begun: Begun) -> Run:
        """Return what has begun as it is needed to abandon it."""
        return Run(
            held=begun.held,
            started_at=begun.started_at,
            began=begun.began,
            backoff=self._backoff_of(begun),
            database=self._config.database,
        )

    def finish(self, begun: Begun, ran: Ran) -> Finished:
        """Return what is to be written of a body that has ended."""
        outcome = self._settler.decide(begun.held.claim, ran.ending, self._backoff_of(begun))
        now = elapsed()
        return _finished(
            held=begun.held,
            ending=ran.ending,
            outcome=outcome,
            started_at=begun.started_at,
            seconds=now - begun.began,
            ended_at=now,
        )

    def _run_action(self, begun: Begun, before: OpenTransactions) -> Finished | None:
        ran = self._run_body(begun)
        # Before the settle, which would otherwise become part of what the body left open.
        before.restore()
        self._drop_half_an_answer(ran)
        return None if begun.held.is_abandoned else self.finish(begun, ran)

    def _run_mutation(self, begun: Begun, before: OpenTransactions) -> Settled | None:
        ran, settled = self._mutate(begun, before)
        is_left = begun.held.is_abandoned
        if not is_left and settled is None and ran.error is not None and self._jobs.is_transient(ran.error):
            # A deadlock or a serialization failure undid all of it: the same claim does all of it once more.
            begun.held.renew()
            ran, settled = self._mutate(begun, before)
        if begun.held.is_abandoned:
            return None
        self._drop_half_an_answer(ran)
        if settled is None:
            return self._settler.settle(self.finish(begun, ran))
        if settled.answer is SettleAnswer.CANCEL_REQUESTED:
            # Not to be asked again: a request that the body itself has made was undone with all that it did.
            return self._settler.settle(self.finish(begun, ran).canceled())
        return settled

    def _mutate(self, begun: Begun, before: OpenTransactions) -> tuple[Ran, Settled | None]:
        mutation = Mutation(
            self._jobs,
            self._settler,
            partial(self._run_body, begun),
            begun.held,
            before=before,
            started_at=begun.started_at,
            backoff=self._backoff_of(begun),
        )
        return self._patience.attempt(begun.held, mutation.run)

    def _run_body(self, begun: Begun) -> Ran:
        if is_plain(begun.function, begun.held):
            return run_plain(begun.function, begun.held, self._config.max_result_bytes)
        return self.body(begun).run()

    def _drop_half_an_answer(self, ran: Ran) -> None:
        if ran.was_stopped or ran.ending.outcome is AttemptOutcome.TIMEOUT:
            # The exception may have landed in the middle of a query, and left half an answer on the line.
            drop(self._config.database)

    def _now(self, held: Held) -> datetime:
        try:
            return self._jobs.now()
        except Exception:
            # Rarely it is read anew, and then with patience.
            return self._patience.attempt(held, self._jobs.now)

    def _backoff_of(self, begun: Begun) -> Backoff:
        return begun.function.backoff or self._config.backoff
