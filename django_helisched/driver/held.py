"""The claims in this worker's hands, from the claim to the settlement."""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from django_helisched.context import Control
from django_helisched.driver.wake import Wakeup
from django_helisched.jobs.job_log import JobLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from django_helisched.jobs.job import ClaimedJob
    from django_helisched.jobs.progress import ProgressReport


class Held:
    """One claim, and the control of its body. Safe in threads: heartbeats tell, the seat runs."""

    # Set where they change: most claims are held for too short a time.
    _interrupt: Callable[[], object] | None = None
    _stored: ProgressReport | None = None
    _is_concluded = False
    is_abandoned = False
    thread_id = 0  # where the body runs, once it does

    def __init__(
        self, claim: ClaimedJob, reported: Callable[[], object] | None = None, claimed_at: float = math.inf
    ) -> None:
        self.claim = claim
        self.claimed_at = claimed_at  # on the clock of stores.clock.elapsed()
        self.log = JobLog()
        self.control = Control(log=self.log, reported=reported)
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Give the body a fresh control for another run under the same claim; what was told stays told."""
        with self._lock:
            self._is_concluded = False
            old = self.control
            self.control = Control(log=old.log, reported=old.reported, progress=old.progress)
            self.control.lease_lost, self.control.lease_at_risk = old.lease_lost, old.lease_at_risk
            self.control.cancel_requested = old.cancel_requested

    def conclude(self) -> bool:
        """Note that the body has ended; False: it was abandoned before, and nothing of it may be written.

        Of ``conclude`` and ``abandon`` the first one has won.
        """
        with self._lock:
            self._is_concluded = not self.is_abandoned
            return self._is_concluded

    def abandon(self) -> bool:
        """Give up a body that does not end; False: it has ended, and whoever ran it writes how."""
        with self._lock:
            if self._is_concluded or self.is_abandoned:
                return False
            self.is_abandoned = self.control.lease_lost = self.control.ended = True
            return True

    def tell_canceled(self) -> None:
        """Ask the body to stop: an async body is canceled, a plain one sees it when it looks."""
        with self._lock:
            self.control.cancel_requested = True
            self._call_interrupt()

    def tell_lost(self) -> None:
        """Let the body know that its claim no longer holds; there is nothing left to do for it."""
        with self._lock:
            self.control.lease_lost = True
            self._call_interrupt()

    def tell_at_risk(self, *, at_risk: bool) -> None:
        """Let the body know whether its lease is being renewed."""
        with self._lock:
            self.control.lease_at_risk = at_risk

    def unstored_progress(self) -> ProgressReport | None:
        """Return the newest report, unless that one is stored."""
        newest = self.control.progress
        return None if newest is self._stored else newest

    def stored_progress(self, report: ProgressReport) -> None:
        """Note which report is stored; the body may have made a newer one meanwhile."""
        self._stored = report

    @property
    def must_stop(self) -> bool:
        """Tell whether the body was asked to stop, or has nothing left to do."""
        return self.control.lease_lost or self.control.cancel_requested

    @contextmanager
    def interruptible(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Call ``interrupt``, from another thread, as soon as the body must stop inside the block."""
        with self._lock:
            self._interrupt = interrupt
            if self.must_stop:
                self._call_interrupt()
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None

    def _call_interrupt(self) -> None:
        if self._interrupt is not None:
            # A loop that has just closed needs no interruption.
            with suppress(RuntimeError):
                self._interrupt()


class HeldClaims:
    """All claims of this process, queued in a seat or running. Safe in threads."""

    def __init__(self) -> None:
        self.reported = Wakeup()  # rung by bodies that report progress
        self._lock = threading.Lock()
        self._held: dict[int, Held] = {}  # by the number that an id is: Python hashes that by itself

    def add(self, claim: ClaimedJob, claimed_at: float = math.inf) -> Held:
        """Begin to hold a claim; see ``add_all``."""
        return self.add_all([claim], claimed_at)[0]

    def add_all(self, claims: Sequence[ClaimedJob], claimed_at: float) -> list[Held]:
        """Begin to hold claims.

        The same job can come back while the body of its older claim still runs
        here; the older fence is void then, and only the newer one is renewed.
        """
        ring = self.reported.ring
        added = {claim.id.int: Held(claim, ring, claimed_at) for claim in claims}
        with self._lock:
            older = [self._held[number] for number in added if number in self._held]
            self._held |= added
        for held in older:
            held.tell_lost()
        return list(added.values())

    def drop(self, held: Held) -> None:
        """Hold a claim no longer; a newer claim of the same job stays."""
        number = held.claim.id.int
        with self._lock:
            if self._held.get(number) is held:
                del self._held[number]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._held)

    def has(self, held: Held) -> bool:
        """Tell whether a claim is held still."""
        return self._held.get(held.claim.id.int) is held

    def all(self) -> list[Held]:
        """Return the claims that are held now."""
        with self._lock:
            return list(self._held.values())
