"""Write how attempts ended, so that it is written whatever they contain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django_helisched.driver.patience import is_outage
from django_helisched.jobs.follow_up import follow_up_of, result_of
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import TERMINAL
from django_helisched.jobs.outcome import ErrorReport, Outcome, canceled, decide
from django_helisched.jobs.records import maker
from django_helisched.stores.base import SettleAnswer, Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from django_helisched.driver.held import Held
    from django_helisched.driver.patience import Patience
    from django_helisched.jobs.backoff import Backoff
    from django_helisched.jobs.job import ClaimedJob
    from django_helisched.jobs.outcome import Ending
    from django_helisched.stores.base import JobStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What the store answered to an attempt's end, and what was written where it was DONE."""

    answer: SettleAnswer
    ending: Ending
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """An attempt whose body has ended, and what is to be written of it.

    It took ``seconds`` and ended at ``ended_at`` on the clock of
    ``stores.clock.elapsed()``. ``is_bare``: nothing is left in it that a database could refuse.
    """

    held: Held
    ending: Ending
    outcome: Outcome
    started_at: datetime
    seconds: float
    ended_at: float
    is_bare: bool = False

    def canceled(self) -> Finished:
        """Return the same end of a job that was canceled while it ran."""
        return replace(self, outcome=canceled(self.ending))

    def bare(self, error: BaseException) -> Finished:
        """Return the same end without what a database could refuse, as it did with ``error``."""
        line = f"what this attempt left could not be stored ({type(error).__name__})"
        report = ErrorReport(error_class=type(error).__name__, error=line, line=line)
        return replace(self, outcome=replace(self.outcome, result=None, report=report), is_bare=True)


_settled_by = maker(Settlement)


class Settler:
    """Decides and writes the ends of attempts."""

    def __init__(self, jobs: JobStore, patience: Patience, rng: Callable[[], float]) -> None:
        self._jobs = jobs
        self._patience = patience
        self._rng = rng

    def decide(self, claim: ClaimedJob, ending: Ending, backoff: Backoff) -> Outcome:
        """Return what becomes of the job; randomness is drawn here, once, whatever is repeated later."""
        return decide(claim, ending, rng=self._rng, backoff=backoff)

    def settle_here(self, held: Held, outcome: Outcome, started_at: datetime) -> SettleAnswer:
        """Write an outcome in the caller's transaction, once; nothing follows in it."""
        return self._jobs.settle([self._settlement(held, outcome, started_at)], is_last=True)[0]

    def settle_together(self, batch: Sequence[Finished]) -> list[SettleAnswer]:
        """Write many ends in one transaction of their own, once, and return an answer for each."""
        return self._jobs.settle([self._settlement_of(one) for one in batch])

    def settle(self, finished: Finished) -> Settled:
        """Write an end in a transaction of its own, with patience.

        A cancel request that came first makes it canceled. Raises what the
        database raises where even the barest report could not be written.
        """
        answer = self._write(finished)
        if answer is SettleAnswer.CANCEL_REQUESTED:
            finished = finished.canceled()
            answer = self._write(finished)
        return Settled(answer=answer, ending=finished.ending, outcome=finished.outcome)

    def _write(self, finished: Finished) -> SettleAnswer:
        # All of it with patience: also the time, which a follow-up needs, comes from the database.
        try:
            return self._patience.attempt(finished.held, lambda: self.settle_together([finished])[0])
        except Exception as error:
            if is_outage(error):
                raise
            bare = finished.bare(error)
        return self._patience.attempt(finished.held, lambda: self.settle_together([bare])[0])

    def _settlement_of(self, finished: Finished) -> Settlement:
        settlement = self._settlement(finished.held, finished.outcome, finished.started_at)
        return replace(settlement, log="", progress=None) if finished.is_bare else settlement

    def _settlement(self, held: Held, outcome: Outcome, started_at: datetime) -> Settlement:
        claim, follow_up = held.claim, None
        if outcome.state in TERMINAL and claim.on_complete:
            follow_up = follow_up_of(
                claim,
                context=claim.context,
                options=claim.options,
                result=result_of(outcome),
                new_id=uuid7(),
                now=self._jobs.now(),
            )
        return _settled_by(
            claim=claim,
            outcome=outcome,
            started_at=started_at,
            follow_up=follow_up,
            log=held.log.text(),
            progress=held.unstored_progress(),
        )
