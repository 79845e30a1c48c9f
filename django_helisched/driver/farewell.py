"""What follows the end of a claim: it is told, and the claim is held no longer."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django_helisched import signals
from django_helisched.driver.events import What
from django_helisched.driver.narration import ended, told, what_ended
from django_helisched.stores.base import SettleAnswer

if TYPE_CHECKING:
    from django_helisched.driver.events import Announcer
    from django_helisched.driver.held import Held, HeldClaims
    from django_helisched.driver.settling import Settled

logger = logging.getLogger("django_helisched.driver")


class Farewell:
    """Takes leave of claims. Whoever waits for the driver to hold nothing has heard everything by then."""

    def __init__(self, held_claims: HeldClaims, announce: Announcer) -> None:
        self._held_claims = held_claims
        self._announce = announce

    def settled(self, held: Held, settled: Settled, seconds: float) -> None:
        """Tell how an attempt of so many seconds has ended."""
        claim = held.claim
        if self._announce.is_heard(what_ended(settled)):
            self._announce(ended(claim, settled, timedelta(seconds=seconds)))
        if settled.answer is SettleAnswer.DONE and signals.job_settled.receivers:
            facts = {"job_id": claim.id, "fn_path": claim.fn_path, "outcome": settled.outcome}
            self._announce.send(signals.job_settled, **facts)
        self._held_claims.drop(held)

    def unsettled(self, held: Held, error: BaseException) -> None:
        """Tell that an end could not be written: the lease lapses, and a sweep takes the job back."""
        logger.debug("The end of job %s could not be written.", held.claim.id, exc_info=error)
        text = f"how it ended could not be written; it runs again once its lease lapses ({type(error).__name__})"
        self._announce(told(held.claim, What.JOB_UNSETTLED, text=text))
        self._held_claims.drop(held)

    def unbegun(self, held: Held, what: What) -> None:
        """Tell of a claim whose body never began."""
        self._announce(told(held.claim, what))
        self._held_claims.drop(held)
