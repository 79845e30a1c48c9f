"""All seats of a driver: threads for plain functions, one event loop for async ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.driver.look_ahead import LookAhead
from django_helisched.driver.mix import SeatKind
from django_helisched.stores.base import CLAIM_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from django_helisched.driver.async_seats import AsyncSeats
    from django_helisched.driver.executor import Executor
    from django_helisched.driver.held import Held
    from django_helisched.driver.lanes import Lane
    from django_helisched.driver.native import NativeExecutor
    from django_helisched.driver.seats import Seats
    from django_helisched.functions import JobFunction


class Seating:
    """Knows where a claim goes, and how much room there is. Without seats on a loop, threads run async bodies, too."""

    def __init__(self, threads: Seats, loop: AsyncSeats, lease: timedelta) -> None:
        self._threads = threads
        self._loop = loop
        self._ahead = {
            SeatKind.THREAD: LookAhead(0 if threads.are_inline else threads.size, lease),
            SeatKind.LOOP: LookAhead(loop.size, lease),
        }
        self._ahead_of_thread, self._ahead_of_loop = self._ahead[SeatKind.THREAD], self._ahead[SeatKind.LOOP]
        self._started_at = dict.fromkeys(SeatKind, 0.0)

    @property
    def size(self) -> int:
        """Return how many jobs run at once."""
        return self._threads.size + self._loop.size

    @property
    def taken(self) -> int:
        """Return how many claims are in seats or wait for one."""
        return self.size - self._threads.free() - self._loop.free()

    def open(self, executor: Executor, native: NativeExecutor, freed: Callable[[SeatKind], None]) -> None:
        """Get ready, and tell when a seat of some kind is ``freed``."""
        ahead_of_thread, ahead_of_loop = self._ahead_of_thread, self._ahead_of_loop

        def work(held: Held) -> None:
            began = ahead_of_thread.began(held.claimed_at)
            executor.run(held)
            ahead_of_thread.ended(began)

        async def work_on_loop(held: Held, lane: Lane) -> None:
            began = ahead_of_loop.began(held.claimed_at)
            await native.run(held, lane)
            ahead_of_loop.ended(began)

        self._threads.open(work, lambda: freed(SeatKind.THREAD))
        self._loop.open(work_on_loop, lambda: freed(SeatKind.LOOP))

    def kind_of(self, function: JobFunction[Any, Any]) -> SeatKind:
        """Return where the bodies of a function run."""
        return SeatKind.LOOP if function.is_async and self._loop.size else SeatKind.THREAD

    def room(self, *, ahead: bool = True) -> dict[SeatKind, int]:
        """Return how many claims of each kind there are seats for, and with ``ahead`` how many more may wait."""
        free = {SeatKind.THREAD: self._threads.free()}
        if self._loop.size:
            free[SeatKind.LOOP] = self._loop.free()
        return {kind: count + (self._ahead[kind].size() if ahead else 0) for kind, count in free.items()}

    @property
    def is_full(self) -> bool:
        """Tell whether no claim is worth a round trip for jobs of some kind, other than one that never has any room."""
        never = SeatKind.THREAD if not self._threads.size else None
        return any(not self.has_room_again(kind) for kind in self.room() if kind is not never)

    def has_room_again(self, kind: SeatKind) -> bool:
        """Tell whether a claim is worth a round trip now: a seat is free, or much of what may wait has begun."""
        # Asked after every job: a key of an enumeration would be hashed by Python code.
        if kind is SeatKind.LOOP:
            ahead, free = self._ahead_of_loop.size(), self._loop.free()
        else:
            ahead, free = self._ahead_of_thread.size(), self._threads.free()
        return free + ahead >= min(CLAIM_LIMIT, max(1, ahead * 3 // 4))

    def start(self, kind: SeatKind, held: Sequence[Held]) -> None:
        """Hand over claims of one kind, which were made together."""
        if held:
            self._started_at[kind] = held[0].claimed_at
            (self._loop if kind is SeatKind.LOOP else self._threads).start(*held)

    def unstarted(self) -> list[Held]:
        """Take back the claims that no seat has begun."""
        return self._threads.unstarted() + self._loop.unstarted()

    def waiting(self) -> list[Held]:
        """Take back the claims for which no seat is free."""
        return self._waiting(self._threads) + self._waiting(self._loop)

    def overdue(self) -> list[Held]:
        """Take back the claims that have waited for a seat for too long."""
        overdue: list[Held] = []
        for kind, seats in ((SeatKind.THREAD, self._threads), (SeatKind.LOOP, self._loop)):
            ahead = self._ahead[kind]
            if seats.free() < 0 and ahead.is_stuck(self._started_at[kind]):
                overdue += self._waiting(seats)
                ahead.give_up()
        return overdue

    def _waiting(self, seats: Seats | AsyncSeats) -> list[Held]:
        count = -seats.free()
        if count <= 0:
            return []
        unstarted = seats.unstarted()
        soon = max(0, len(unstarted) - count)
        seats.start(*unstarted[:soon])
        return unstarted[soon:]

    @property
    def has_waiting(self) -> bool:
        """Tell whether a claim waits for a seat."""
        return self._threads.free() < 0 or self._loop.free() < 0

    def close(self) -> None:
        """Let every seat end once it has finished what it runs."""
        self._threads.close()
        self._loop.close()
