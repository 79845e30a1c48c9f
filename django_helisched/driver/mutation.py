"""Run a mutation: its body and its settlement in one transaction, or nothing of either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.driver.body import Ran
from django_helisched.driver.connections import OpenTransactions
from django_helisched.driver.endings import ending_of_error
from django_helisched.driver.settling import Settled
from django_helisched.exceptions import HelischedError
from django_helisched.jobs.outcome import AttemptOutcome
from django_helisched.stores.base import SettleAnswer

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django_helisched.driver.held import Held
    from django_helisched.driver.settling import Settler
    from django_helisched.jobs.backoff import Backoff
    from django_helisched.stores.base import JobStore


class TransactionControl(HelischedError):
    """A mutation's body left a transaction open, or ended one that was not its own."""


class _Undo(Exception):
    """Leaves the transaction so that all of it is undone."""

    def __init__(self, ran: Ran, settled: Settled | None) -> None:
        super().__init__()
        self.ran = ran
        self.settled = settled


class Mutation:
    """One run of a mutation under one claim."""

    def __init__(
        self,
        jobs: JobStore,
        settler: Settler,
        body: Callable[[], Ran],
        held: Held,
        *,
        before: OpenTransactions,
        started_at: datetime,
        backoff: Backoff,
    ) -> None:
        self._jobs = jobs
        self._settler = settler
        self._body = body
        self._held = held
        self._before = before
        self._started_at = started_at
        self._backoff = backoff
        self._has_begun = False

    def run(self) -> tuple[Ran, Settled | None]:
        """Return how the body ended, and what was settled with it; None: all is undone, nothing is settled.

        Raises only where the transaction could not begin, so that no body has run.
        """
        try:
            return self._committed()
        except _Undo as undo:
            return undo.ran, undo.settled
        except Exception as error:
            if not self._has_begun:
                raise
            # The settlement or the commit failed: the body's effects are gone with it.
            return Ran(ending=ending_of_error(error), error=error), None
        finally:
            self._before.restore()

    def _committed(self) -> tuple[Ran, Settled]:
        with self._jobs.atomic():
            inside = OpenTransactions()
            self._has_begun = True
            ran = self._body()
            if self._held.is_abandoned or ran.ending.outcome is not AttemptOutcome.SUCCESS:
                raise _Undo(ran, None)
            _check(self._held.claim.fn_path, inside)
            outcome = self._settler.decide(self._held.claim, ran.ending, self._backoff)
            answer = self._settler.settle_here(self._held, outcome, self._started_at)
            settled = Settled(answer=answer, ending=ran.ending, outcome=outcome)
            if answer is not SettleAnswer.DONE:
                raise _Undo(ran, settled)
            return ran, settled


def _check(fn_path: str, inside: OpenTransactions) -> None:
    left_open, closed = inside.left_open(), inside.closed()
    if left_open or closed:
        did = f"left a transaction open on {left_open[0]}" if left_open else f"ended the transaction on {closed[0]}"
        raise TransactionControl(
            f"{fn_path} {did}. A mutation runs inside one transaction that it neither begins nor ends; "
            "use atomic() as a block or a decorator, or make it an action."
        )
