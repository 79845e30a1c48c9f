"""Renew the leases of everything held, from a thread of its own.

A body that keeps its own thread busy, or a transaction open, must not cost the
job its lease. So heartbeats have a thread and a connection that nothing else uses.
"""

from __future__ import annotations

import logging
import math
import threading
from typing import TYPE_CHECKING

from django.db import Error

from django_helisched.driver import connections
from django_helisched.driver.events import What
from django_helisched.driver.outage import Outage
from django_helisched.driver.patience import is_outage
from django_helisched.jobs.leases import heartbeat_interval
from django_helisched.stores.clock import elapsed
from django_helisched.stores.orm.connection import is_locked_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.events import Announcer
    from django_helisched.driver.held import Held, HeldClaims
    from django_helisched.driver.loop_watch import LoopWatch
    from django_helisched.driver.watch import Watch
    from django_helisched.stores.base import HeartbeatAnswer, JobStore, WorkerReport

logger = logging.getLogger("django_helisched.driver")

# A beat without anything held is left out where something was written so short a part of the interval ago. Longer rests
# would begin the watch anew under load, and every recovery would wait for it.
REST = 0.5

STORE_EVERY = 1.0  # seconds between two stores of progress: live for people, nothing for the database

# After a hurried beat the next one comes no sooner, so that many cancels are learned of together.
_GAP = 0.025  # seconds


class Heartbeat:
    """Beats every third of the lease; sooner again after a beat that failed, and at once when told to hurry.

    Between two beats it stores the progress that bodies report, about once a
    second; where none does, nothing.
    """

    def __init__(
        self,
        jobs: JobStore,
        config: DriverConfig,
        claims: HeldClaims,
        report: Callable[[], WorkerReport],
        announce: Announcer,
        watch: Watch,
        loop_watch: LoopWatch,
    ) -> None:
        self._jobs = jobs
        self._watch = watch
        self._loop_watch = loop_watch
        self._config = config
        self._claims = claims
        self._report = report
        self._announce = announce
        self._interval = heartbeat_interval(config.lease).total_seconds()
        # Several tries must fit into what is left of a lease after one failure.
        self.outage = Outage(announce, What.HEARTBEAT_LOST, What.HEARTBEAT_BACK, longest=self._interval / 2)
        self._stopping = threading.Event()
        self._hurried = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to beat."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="helisched-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop beating, and return when the last beat is over."""
        self._stopping.set()
        self._ring()
        if self._thread is not None:
            self._thread.join(timeout=self._interval)

    def hurry(self) -> None:
        """Ask now what became of what is held: something was canceled. Returns at once."""
        if self._claims.all():
            self._ring()

    def beat(self) -> None:
        """Renew every lease, pass on cancels and losses, store progress, report this worker. Raises on failure."""
        self._renew()
        self.store_progress()
        self._jobs.report_worker(self._report())
        self._watch.wrote(self._jobs.now())

    def store_progress(self) -> None:
        """Store the newest report of every body that has made one since the last time. Raises on failure."""
        self._claims.reported.clear()
        found = [(one, report) for one in self._claims.all() if (report := one.unstored_progress()) is not None]
        if found:
            self._jobs.progress([(one.claim, report) for one, report in found])
        for one, report in found:
            one.stored_progress(report)

    def _ring(self) -> None:
        self._hurried.set()
        self._claims.reported.ring()

    def _renew(self) -> None:
        held = self._claims.all()
        if held:
            self._tell(held, self._jobs.heartbeat([one.claim for one in held], lease=self._config.lease))

    def _run(self) -> None:
        beat_at, store_at = elapsed() + self._interval, 0.0
        try:
            while True:
                self._claims.reported.wait(beat_at - elapsed())
                is_hurried = self._hurried.wait(max(0.0, min(beat_at, store_at) - elapsed()))
                # Before the beat: whoever hurries from here on gets another one.
                self._hurried.clear()
                if self._stopping.is_set():
                    return
                self._loop_watch.look()
                if elapsed() >= beat_at:
                    beat_at = elapsed() + self._beat_or_rest()
                elif is_hurried:
                    beat_at = self._beat_in_between(beat_at)
                    continue
                else:
                    self._try_to_store()
                store_at = elapsed() + STORE_EVERY
        finally:
            connections.drop_all()

    def _beat_or_rest(self) -> float:
        """Beat, unless nothing is held and this process has written lately; return the seconds until the next time."""
        is_idle = not self._claims.all() and not self.outage.is_on
        if is_idle and self._watch.seconds_since_write() < REST * self._interval:
            self.outage.moved()
            return self._interval
        return self._try(self._beat_on_any_line if is_idle else self.beat)

    def _beat_on_any_line(self) -> None:
        """Beat, and where the line was closed meanwhile once more on a new one, so that nobody has to ask it before."""
        try:
            self.beat()
        except Error as error:
            if not is_outage(error) or is_locked_file(error):
                raise
            connections.drop(self._config.database)
            self.beat()

    def _beat_in_between(self, beat_at: float) -> float:
        """Renew before ``beat_at``, and return when to beat next; during an outage its own tries are enough."""
        if self.outage.is_on:
            return beat_at
        next_at = elapsed() + self._try(self._renew)
        self._stopping.wait(_GAP)
        return min(beat_at, next_at)

    def _try(self, beat: Callable[[], object]) -> float:
        """Beat, and return the seconds until the next beat."""
        try:
            # Between two beats a server with a short idle timeout closes the connection; that is no outage.
            trusted_for = math.inf if beat == self._beat_on_any_line else connections.TRUSTED_FOR
            connections.freshen(self._config.database, trusted_for=trusted_for)
            beat()
        except Exception as error:
            connections.drop(self._config.database, was_lost=is_outage(error))
            self._mark_at_risk()
            return self.outage.failed(error)
        self.outage.passed()
        return self._interval

    def _try_to_store(self) -> None:
        try:
            connections.freshen(self._config.database)
            self.store_progress()
        except Exception as error:
            # The next beat stores it, and tells if that fails, too.
            connections.drop(self._config.database, was_lost=is_outage(error))
            logger.debug("Progress could not be stored.", exc_info=True)

    def _mark_at_risk(self) -> None:
        for one in self._claims.all():
            one.tell_at_risk(at_risk=True)

    def _tell(self, held: list[Held], answer: HeartbeatAnswer) -> None:
        for one in held:
            one.tell_at_risk(at_risk=False)
            if one.claim.id in answer.lost:
                one.tell_lost()
            elif one.claim.id in answer.cancel_requested:
                one.tell_canceled()
