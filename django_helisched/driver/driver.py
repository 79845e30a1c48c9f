"""Driver: one deterministic pass, and the loop around it."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured

from django_helisched import logging, wiring
from django_helisched.driver.abandoning import Abandoning
from django_helisched.driver.async_seats import AsyncSeats
from django_helisched.driver.booting import migrated
from django_helisched.driver.claiming import Claimed, Claiming
from django_helisched.driver.events import Announcer, DriverEvent, What, log_event
from django_helisched.driver.executor import Executor
from django_helisched.driver.farewell import Farewell
from django_helisched.driver.firing import Fired, Firing
from django_helisched.driver.haste import WHOLE_EVERY, Haste
from django_helisched.driver.heartbeat import Heartbeat
from django_helisched.driver.held import HeldClaims
from django_helisched.driver.identity import DRAINING, STOPPED, Identity
from django_helisched.driver.lanes import Lanes
from django_helisched.driver.leaving import GOODBYE, within
from django_helisched.driver.look_ahead import LONGEST_WAIT
from django_helisched.driver.loop_watch import LoopWatch
from django_helisched.driver.native import NativeExecutor
from django_helisched.driver.outage import Endurance, Outage
from django_helisched.driver.outbox import DirectOutbox, ThreadOutbox
from django_helisched.driver.pace import Look, Pace
from django_helisched.driver.patience import Patience
from django_helisched.driver.pauses import Pauses
from django_helisched.driver.pruning import Pruning
from django_helisched.driver.reconciling import Reconciling
from django_helisched.driver.seating import Seating
from django_helisched.driver.seats import Seats, ThreadSeats
from django_helisched.driver.settling import Settler
from django_helisched.driver.sweeping import Sweeping
from django_helisched.driver.ticks import Tick
from django_helisched.driver.vitals import Vitals, longest_silence
from django_helisched.driver.wake import Wakeup
from django_helisched.driver.waking import Listening
from django_helisched.driver.watch import Watch
from django_helisched.exceptions import HelischedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.events import Observer
    from django_helisched.driver.held import Held
    from django_helisched.driver.mix import SeatKind
    from django_helisched.driver.outbox import Outbox
    from django_helisched.driver.vitals import Status
    from django_helisched.driver.waking import Ear
    from django_helisched.stores.base import CronStore, JobStore, WorkerReport

STEP_ASIDE = 0.0005  # seconds: a thread on a processor that slept is awake after a quarter of that
LOOK_EVERY = 1.0  # seconds between two looks of a driver that only waits for its jobs to end


class Driver:
    """Fires crons, claims jobs, runs them in its seats and tells the store how they ended.

    Any number of drivers work on one database; none of them is needed by the
    others. ``observe`` is told what happened and can change nothing. ``ear`` hears
    what other processes store; without one ``run`` polls.
    """

    def __init__(
        self,
        jobs: JobStore,
        crons: CronStore,
        config: DriverConfig,
        *,
        seats: Seats | None = None,
        observe: Observer = log_event,
        rng: Callable[[], float] = random.random,
        ear: Ear | None = None,
    ) -> None:
        self.jobs = jobs
        self.config = config
        self._seats = seats or ThreadSeats(config.threads)
        # Seats that were given run whatever comes.
        self._loop_seats = AsyncSeats(
            config.async_jobs if seats is None else 0, Lanes(config.database, config.async_orm)
        )
        self._seating = Seating(self._seats, self._loop_seats, config.lease)
        self._announce = Announcer(observe)
        self._held = HeldClaims()
        self._identity = Identity(config, self._seating.size, jobs.now)
        self._hurry, self._never = threading.Event(), threading.Event()
        patience = Patience(config.database, config.lease, self._hurry)
        settler, farewell = Settler(jobs, patience, rng), Farewell(self._held, self._announce)
        self._outbox: Outbox = (
            DirectOutbox(settler, farewell)
            if self._seats.are_inline
            else ThreadOutbox(settler, farewell, patience, self._held, self._wrote)
        )
        abandoning = Abandoning(config, self._seats, settler, self._outbox, self._announce, self._wear_out)
        self._executor = Executor(
            jobs,
            config,
            settler=settler,
            patience=patience,
            outbox=self._outbox,
            abandoning=abandoning,
            farewell=farewell,
            announce=self._announce,
            wrote=self._wrote,
        )
        self._native = NativeExecutor(self._executor, abandoning, self._loop_seats, self._outbox, farewell)
        self._loop_watch = LoopWatch(self._loop_seats, self._native, self._announce)
        self._firing = Firing(jobs, crons, config, self._announce)
        self._claiming = Claiming(jobs, config, self._seating, self._held, self._announce)
        watch = Watch(config.lease)
        self._sweeping = Sweeping(jobs, config, self._report, self._announce, rng, watch)
        self._pauses = Pauses(jobs, config.queues, self._announce)
        self._reconciling = Reconciling(jobs, crons, self._identity, self._report, self._announce)
        self._pruning = Pruning(jobs, crons, config.retention, self._announce, rng)
        self._heartbeat = Heartbeat(jobs, config, self._held, self._report, self._announce, watch, self._loop_watch)
        self._haste = Haste()
        self._pace = Pace(config.poll_min, config.poll_max, config.poll_net)
        self._wakeup = Wakeup()
        self._listening = Listening(ear, self._pace, self._announce, wake=self.wake, hurry=self.hurry, claim=self.claim)
        outage = Outage(self._announce, What.DATABASE_LOST, What.DATABASE_BACK)
        self._vitals = Vitals({"loop": outage, "heartbeat": self._heartbeat.outage}, longest_silence(config))
        self._endurance = Endurance(outage, config.database, self._wakeup, lambda: self._is_stopping)
        self._one_pass = threading.RLock()
        self._is_running = False
        self._is_woken = False
        self._is_stopping = False
        self._was_told_to_stop = False
        self._must_stop_now = False
        self._is_worn_out = False
        self._look: Look | None = None
        self._is_open = False

    def tick(self) -> Tick:
        """Do one pass (fire, sweep when due, claim, start, prune where nothing else was to do) and return what it did.

        A wake that comes during the pass is answered by one more pass in the
        same call; one that comes during that is left for the next call. A
        second thread waits, and then does a pass of its own: what was due when
        it called has been looked at when it returns. Raises what the database
        raises; the next call starts afresh.
        """
        with self._one_pass, self._wakeable(), self._keeping_logs():
            self._open_seats()
            done = self._pass()
            return done + self._pass() if self._is_woken else done

    def run(self) -> None:
        """Boot, tick and wait until told to stop; then drain.

        An error of the database is said once and waited out. Raises at boot, for
        what a person must mend: NotMigrated, ImproperlyConfigured, a name that two crons share.
        """
        with self.at_work():
            self._endurance.persist(self.boot, fatal=(HelischedError, ImproperlyConfigured))
            self._vitals.is_booted = True
            # To the end: what runs may be canceled while it is waited for.
            with self._listening.going_on():
                while not self._is_stopping:
                    self._endurance.persist(self._turn)
                    self._endurance.persist(self.wait)
                self.drain()

    def wait(self) -> None:
        """Return when it is time for another tick: woken, a seat free, something due, or the poll's time over."""
        if self._look is not None and not self._is_stopping:
            self._wakeup.wait(self._pace.seconds_after(self._look, self.jobs.now()))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep seats, heartbeats and wake-ups going inside the block."""
        self._is_running = True
        wiring.add_listener(self.wake)
        wiring.add_canceler(self.hurry)
        self._open_seats()
        self._heartbeat.start()
        try:
            yield
        finally:
            self._heartbeat.stop()
            wiring.remove_canceler(self.hurry)
            wiring.remove_listener(self.wake)
            self._is_running = False
            self.close()
        self._say_goodbye()

    def boot(self) -> None:
        """Check the tables, sweep, lift holds, and make the rows of code crons equal to their declarations."""
        with migrated(self.config.database):
            self.sweep()
        if self.config.fire_crons:
            self._reconciling.reconcile()
            self._firing.tell_plans()

    def sweep(self) -> int:
        """Take back lapsed leases, end what expired, lift holds; return how many jobs ended or were taken back."""
        done = self._sweeping.sweep()
        if self._sweeping.has_chores or self._pauses.are_known:
            self._pauses.look()
        return done

    def prune(self) -> int:
        """Delete old rows, as many as one call may, and return how many; a pass does it by and by in idle time."""
        return self._pruning.prune()

    def beat(self) -> None:
        """Renew the leases of everything held and learn of cancels: what the heartbeat's own thread does."""
        self._heartbeat.beat()

    def wake(self) -> None:
        """Make a sleeping driver look now, or a pass that is on its way look once more. Returns at once."""
        self._is_woken = True
        self._wakeup.ring()

    def claim(self) -> bool:
        """Claim what has just been told of, on the calling thread's connection, and tell whether that was done.

        False, at once, where that would wait, or be unfair: a pass is on its way, or seats are full. ``wake`` it then.
        The rest of a pass is left to the loop, which is rung for. Raises what the database raises.
        """
        if self._seats.are_inline or not self._one_pass.acquire(blocking=False):
            return False
        try:
            if self._look is None or self._is_stopping or self._claiming.is_hungry:
                return False
            self._claim_at_once()
        finally:
            self._one_pass.release()
        self._wakeup.ring()
        return True

    def hurry(self) -> None:
        """Ask now, and not a third of the lease later, whether what runs here was canceled. Returns at once."""
        self._heartbeat.hurry()

    def stop(self) -> None:
        """Claim nothing more and end once what runs has ended; called again: end at once.

        Returns at once, and may be called by a signal handler.
        """
        self._must_stop_now = self._was_told_to_stop
        self._was_told_to_stop = self._is_stopping = True
        self._wakeup.ring()

    @property
    def in_flight(self) -> int:
        """Return how many jobs this process holds."""
        return len(self._held)

    @property
    def has_seats(self) -> bool:
        """Tell whether it runs jobs, or only makes them."""
        return self._seating.size > 0

    @property
    def is_stopping(self) -> bool:
        """Tell whether it claims nothing more."""
        return self._is_stopping

    @property
    def is_worn_out(self) -> bool:
        """Tell whether it stops because abandoned bodies occupy its threads: the process is to be started anew."""
        return self._is_worn_out

    @property
    def is_cut_short(self) -> bool:
        """Tell whether it was told to end at once."""
        return self._must_stop_now

    def status(self) -> Status:
        """Return whether it lives and takes jobs, without asking the database."""
        return self._vitals.status(is_stopping=self._is_stopping, in_flight=self.in_flight, seats=self._seats.size)

    def drain(self) -> None:
        """Claim nothing more, and return when everything claimed has ended.

        Told to stop once more it gives back what has not begun and returns at
        once; the leases of what still runs lapse.
        """
        self._is_stopping = True
        with self._one_pass:
            pass  # nobody takes anything any more
        self._identity.state = DRAINING
        if self._seating.has_waiting:
            within(GOODBYE, self._claiming.give_back_waiting)
        if self.in_flight:
            self._announce(DriverEvent(what=What.DRIVER_DRAINING, text=f"Finishing {_jobs(self.in_flight)}."))
        while True:
            self._wakeup.clear()
            if self._must_stop_now or not self.in_flight:
                break
            self._vitals.moved("loop")
            self._wakeup.wait(min(LOOK_EVERY, self.config.lease.total_seconds()))
            self._look_after()
        if self._must_stop_now:
            self._hurry.set()
            self._outbox.close()
            # On SQLite a mutation of our own may hold the write lock: nobody waits for that any more.
            within(GOODBYE, self._leave)

    def close(self) -> None:
        """Let the seats' threads end; the next tick opens them again."""
        if self._is_open and self._logs_for_long:
            logging.remove()
        self._is_open = False
        self._seating.close()
        self._outbox.close()

    def _leave(self) -> None:
        self._claiming.give_back()
        self._outbox.join(GOODBYE)

    def _turn(self) -> None:
        """Do what a ring asks for: claim at once, and then a whole pass, unless that can wait for a moment."""
        with self._one_pass:
            if not self._claim_in_haste():
                self.tick()

    def _claim_in_haste(self) -> bool:
        """Claim before all else where that is fair; tell whether there was more than enough, so that the rest can wait.

        While jobs are many it is fair between two whole looks; while they are few, all that is due finds a seat.
        """
        now, look = self.jobs.now(), self._look
        may_wait = self._haste.allows(now) and not self._claiming.has_turns
        if look is None or self._is_stopping or not (may_wait if self._claiming.is_hungry else self._is_woken):
            return False
        self._is_woken = False
        self._wakeup.clear()
        claimed = self._claim_at_once()
        if not (self._claiming.is_hungry and may_wait):
            return False
        soon = now + timedelta(seconds=WHOLE_EVERY)
        self._look = replace(look, at=now, again=claimed.look_again, busy=True, due=(*look.due, soon))
        return True

    def _claim_at_once(self) -> Claimed:
        was_idle = not self._claiming.is_hungry
        claimed = self._claiming.claim_at_once()
        if claimed.started and was_idle:
            # The seats wake up, and then wait for the interpreter until this thread lets go of it.
            self._never.wait(STEP_ASIDE)
        if self._claiming.is_spent:
            self._is_stopping = True
        return claimed

    def _pass(self) -> Tick:
        # Before looking, so that whatever is stored from here on rings again.
        self._is_woken = False
        self._wakeup.clear()
        self._look_after()
        now = self.jobs.now()
        fired = self._firing.fire(now) if self.config.fire_crons else Fired()
        swept = self._sweep_if_due(now)
        claimed = Claimed() if self._is_stopping else self._claiming.claim(self.jobs.now())
        found = bool(fired.jobs or claimed.started)
        pruned = 0 if found else self._prune_if_idle(claimed)
        due = (fired.next_due_at, claimed.next_due_at, self._sweeping.next_at, self._overdue_at(now))
        self._look = Look(
            at=now,
            again=fired.look_again or claimed.look_again,
            busy=found or bool(pruned),
            news=claimed.started > fired.jobs,
            due=due,
        )
        if claimed.is_whole and not fired.look_again:
            self._haste.looked(due)
        self._is_stopping = self._is_stopping or self._claiming.is_spent
        return Tick(fired.jobs, swept, claimed.started, pruned)

    def _wear_out(self) -> None:
        self._is_worn_out = self._is_stopping = True
        self._wakeup.ring()

    def _sweep_if_due(self, now: datetime) -> int:
        if self._reconciling.is_due(now):
            self._reconciling.reconcile()
        return self.sweep() if self._sweeping.is_due(now) else 0

    def _prune_if_idle(self, claimed: Claimed) -> int:
        is_idle = not (self._is_stopping or claimed.look_again) and self._seating.taken < self._seating.size
        return self._pruning.prune_if_due(self.jobs.now(), claimed.next_due_at) if is_idle else 0

    def _look_after(self) -> None:
        """See to what waits inside this process."""
        self._outbox.watch()
        self._loop_watch.look()
        self._claiming.give_back_overdue()

    def _overdue_at(self, now: datetime) -> datetime | None:
        """Return when to look after what waits inside this process; None where nothing does."""
        waits = self._seating.has_waiting or self.in_flight > self._seating.taken
        return now + timedelta(seconds=LONGEST_WAIT) if waits else None

    def _freed(self, kind: SeatKind) -> None:
        if self._is_stopping or (self._claiming.is_hungry and self._seating.has_room_again(kind)):
            self._wakeup.ring()

    def _wrote(self, written: Sequence[Held]) -> None:
        # A seat that is free has rung already, and a job that was put back rings by itself.
        if self._claiming.let_out_others(written) or self._claiming.is_bounded or self._is_stopping:
            self._wakeup.ring()

    def _report(self) -> WorkerReport:
        return self._identity.report(self.in_flight)

    @contextmanager
    def _wakeable(self) -> Iterator[None]:
        wiring.add_listener(self.wake)
        try:
            yield
        finally:
            if not self._is_running:
                wiring.remove_listener(self.wake)

    @property
    def _logs_for_long(self) -> bool:
        """Tell whether jobs may log at any time, and not only while somebody ticks."""
        return self._seating.size > 0 and not self._seats.are_inline

    @contextmanager
    def _keeping_logs(self) -> Iterator[None]:
        if not self._seats.are_inline:
            yield
            return
        logging.install(self.config.job_log_level)
        try:
            yield
        finally:
            logging.remove()

    def _open_seats(self) -> None:
        if not self._is_open:
            self._is_open = True
            if self._logs_for_long:
                logging.install(self.config.job_log_level)
            self._outbox.open()
            self._seating.open(self._executor, self._native, self._freed)

    def _say_goodbye(self) -> None:
        self._identity.state = STOPPED
        if self._must_stop_now:
            within(GOODBYE, lambda: self.jobs.report_worker(self._report()))
        else:
            with suppress(Exception):  # for people only; the row grows old by itself
                self.jobs.report_worker(self._report())
        left = f" {_jobs(self.in_flight)} left: other workers run them when the leases lapse." if self.in_flight else ""
        self._announce(DriverEvent(what=What.DRIVER_STOPPED, text=f"Stopped.{left}"))


def _jobs(count: int) -> str:
    return f"{count} running {'job' if count == 1 else 'jobs'}"
