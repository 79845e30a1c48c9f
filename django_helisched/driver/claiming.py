"""Take due jobs for the seats, and put them there."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django_helisched import functions
from django_helisched.driver.events import What
from django_helisched.driver.mix import Mix, SeatKind
from django_helisched.driver.narration import told
from django_helisched.driver.outbox import ROOM
from django_helisched.stores.base import CLAIM_LIMIT, DeclaredLimits
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.events import Announcer
    from django_helisched.driver.held import Held, HeldClaims
    from django_helisched.driver.seating import Seating
    from django_helisched.functions import JobFunction
    from django_helisched.jobs.job import ClaimedJob
    from django_helisched.stores.base import JobStore, QueueFilter

TURNS_REMEMBERED = 1.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What one look at the due jobs did, and when the next one is due, as far as it was asked.

    ``is_whole``: who waits for a limit, or for another job, was let out first.
    """

    started: int = 0
    look_again: bool = False
    next_due_at: datetime | None = None
    is_whole: bool = False


class Claiming:
    """Claims what the free seats can begin, and while jobs are short a few more, which wait for the next seats."""

    def __init__(
        self,
        jobs: JobStore,
        config: DriverConfig,
        seating: Seating,
        held_claims: HeldClaims,
        announce: Announcer,
    ) -> None:
        self._jobs = jobs
        self._config = config
        self._seating = seating
        self._held_claims = held_claims
        self._announce = announce
        self._mix = Mix()
        self._suspects: list[Held] = []
        self._room: dict[SeatKind, int] = {}  # as of the last look
        self._turn = 0
        self._started = 0
        self.is_hungry = True
        self.is_bounded = False
        self._turn_taken_at = -math.inf
        self._declared: DeclaredLimits | None = None  # as of the first look: a driver is made without a database, too

    @property
    def is_spent(self) -> bool:
        """Tell whether ``max_tasks`` jobs have been started; one that waits for a seat may be given back yet."""
        most = self._config.max_tasks
        return most is not None and self._started >= most and not self._seating.has_waiting

    @property
    def has_turns(self) -> bool:
        """Tell whether jobs have run lately whose end lets out another one, which waits for it."""
        return elapsed() - self._turn_taken_at < TURNS_REMEMBERED

    def let_out_others(self, ended: Sequence[Held]) -> bool:
        """Note ends that were written, and tell whether they may let out a job that waits for its turn."""
        found = {path: functions.find(path) for path in {one.claim.fn_path for one in ended}}
        has_turn = any(_takes_turns(one.claim, found[one.claim.fn_path]) for one in ended)
        if has_turn:
            self._turn_taken_at = elapsed()
        return has_turn

    def claim_at_once(self) -> Claimed:
        """Claim and start what can be claimed, and ask nothing else: who waits for a limit, and what is due next.

        ``is_hungry`` afterwards: there was as much as there is room for, or no room.
        """
        was_idle, self.is_hungry = not self.is_hungry, True
        looks = self._looks(probe=was_idle, few=was_idle)
        if not looks:
            return Claimed()
        started, self.is_hungry = self._claim_from(looks)
        return Claimed(started=started, look_again=self.is_hungry and bool(self._looks(probe=False)))

    def claim(self, now: datetime) -> Claimed:
        """Claim and start what is due at ``now`` and fits; with no room the store is not asked.

        ``is_hungry`` afterwards: there may be more, so that a seat that is free again is worth a look.
        """
        # Before the room is looked at, so that a seat that is freed from here on is not missed.
        self.is_hungry = True
        looks = self._looks()
        if not looks:
            return Claimed()
        self._jobs.admit(queues=self._config.queues, limits=self._limits())
        next_due_at = self._jobs.next_due_at(self._config.queues)
        if next_due_at is None or next_due_at > now:
            self.is_hungry = False
            return Claimed(next_due_at=next_due_at, is_whole=True)
        started, is_full = self._claim_from(looks)
        self.is_hungry = is_full or self._seating.is_full
        if is_full:
            return Claimed(started=started, look_again=bool(self._looks()), is_whole=True)
        if self.is_hungry and started:
            return Claimed(started=started, is_whole=True)  # the next seat that is free looks again
        # What was due hid what is due next.
        next_due_at = self._jobs.next_due_at(self._config.queues)
        return Claimed(started=started, next_due_at=next_due_at, is_whole=True)

    def give_back(self) -> None:
        """Release the claims that no seat has begun."""
        self._release(self._seating.unstarted())

    def give_back_waiting(self) -> None:
        """Release the claims for which no seat is free."""
        self._release(self._seating.waiting())

    def give_back_overdue(self) -> None:
        """Release the claims that have waited for a seat for too long: another process may have one."""
        self._release(self._seating.overdue())

    def _looks(self, *, probe: bool = True, few: bool = False) -> list[tuple[QueueFilter, int]]:
        spare = ROOM + self._seating.size - len(self._held_claims)
        self.is_bounded = spare < CLAIM_LIMIT
        bounds = [CLAIM_LIMIT, spare]
        if self._config.max_tasks is not None:
            bounds.append(self._config.max_tasks - self._started)
        limit = min(bounds)
        self._suspects = [held for held in self._suspects if self._held_claims.has(held)]
        room = self._room = self._seating.room(ahead=not self._suspects)
        # A few at a time cost as much as many: each claim would find the little that has begun during the one before.
        soon = frozenset(kind for kind, count in room.items() if count > 0 and not self._seating.has_room_again(kind))
        looks = self._mix.looks(self._config.queues, room, elapsed(), probe=probe, few=few, soon=soon)
        return [(queues, min(limit, most)) for queues, most in looks if limit > 0]

    def _claim_from(self, looks: Sequence[tuple[QueueFilter, int]]) -> tuple[int, bool]:
        """Claim from one group of queues after the other until one has jobs; tell how many, and whether more wait."""
        first = self._turn % len(looks)
        for tried, (queues, limit) in enumerate((*looks[first:], *looks[:first]), start=1):
            claims = self._jobs.claim(
                worker_id=self._config.worker_id,
                limit=limit,
                lease=self._config.lease,
                queues=queues,
                turn=self._turn,
            )
            if claims:
                self._turn += 1
                return self._start(claims), len(claims) == limit or tried < len(looks)
        self._turn += 1
        return 0, False

    def _start(self, claims: Sequence[ClaimedJob]) -> int:
        # Most jobs of a claim run the same few functions.
        found = {path: functions.find(path) for path in {claim.fn_path for claim in claims}}
        kinds = {path: self._seating.kind_of(function) for path, function in found.items() if function is not None}
        now = elapsed()
        # All are renewed from now on, also those that wait for the first ones to end.
        added = self._held_claims.add_all([claim for claim in claims if claim.fn_path in kinds], now)
        held = {kind: [one for one in added if kinds[one.claim.fn_path] is kind] for kind in SeatKind}
        for kind, of_kind in held.items():
            for queue in {one.claim.queue for one in of_kind}:
                self._mix.saw(queue, kind, now)
        if any(_takes_turns(one.claim, found[one.claim.fn_path]) for one in added):
            self._turn_taken_at = now
        begin, leave = self._fitting(held)
        self._started += len(added)
        self._release(leave)
        for kind, fitting in begin.items():
            self._seating.start(kind, fitting)
        self._hold([claim for claim in claims if claim.fn_path not in kinds])
        return sum(map(len, begin.values()))

    def _fitting(self, held: Mapping[SeatKind, Sequence[Held]]) -> tuple[dict[SeatKind, Sequence[Held]], list[Held]]:
        """Part claims into those for which there is room, and those to give back.

        Beside a job that has taken a worker down before, nothing waits: it would be counted among the losses.
        """
        suspects = [one for of_kind in held.values() for one in of_kind if one.claim.losses]
        self._suspects += suspects
        leave = self._seating.unstarted() if suspects else []
        # As it was asked for: the look-ahead may have shrunk since, and giving a claim back costs more than keeping it.
        room = self._seating.room(ahead=False) if suspects else dict(self._room)
        begin: dict[SeatKind, Sequence[Held]] = {}
        for kind, of_kind in held.items():
            count = max(0, room.get(kind, 0))
            begin[kind] = of_kind[:count]
            leave.extend(of_kind[count:])
        return begin, leave

    def _release(self, held: Sequence[Held]) -> None:
        if not held:
            return
        # Where it fails their leases lapse, and a sweep gives them back.
        with suppress(Exception):
            self._jobs.release([one.claim for one in held])
        self._started -= len(held)
        for one in held:
            self._held_claims.drop(one)
            self._announce(told(one.claim, What.JOB_RELEASED))

    def _limits(self) -> DeclaredLimits:
        self._declared = self._declared or DeclaredLimits(capacity_of=functions.capacity_of, since=self._jobs.now())
        return self._declared

    def _hold(self, unknown: Sequence[ClaimedJob]) -> None:
        if not unknown:
            return
        self._jobs.hold_unknown(unknown)
        for claim in unknown:
            text = (
                f'this code does not have the function; the job was left waiting ("unknown function"). Keep an alias, '
                f'aliases=["{claim.fn_path}"], or cancel the job.'
            )
            self._announce(told(claim, What.JOB_HELD, text=text))


def _takes_turns(claim: ClaimedJob, function: JobFunction[Any, Any] | None) -> bool:
    """Tell whether jobs may wait until this one has ended: others of its cron, or under its limit."""
    return claim.cron_id is not None or function is None or function.concurrency is not None
