"""Keep several scheduler processes running: start them anew when they end, pass on what we are told.

The supervisor has no connection to the database and runs no job. No process needs
it to work: one whose supervisor is gone finishes what it runs and ends.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django_helisched.driver.child import Child, words_of
from django_helisched.driver.events import Announcer, DriverEvent, What
from django_helisched.driver.orders import FINISH, LEAVE
from django_helisched.driver.signals import START_ME_AGAIN, STOPPING
from django_helisched.driver.vitals import STARTING, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FIRST_DELAY, LONGEST_DELAY = 0.5, 60.0  # seconds between the end of a process and its next start
STABLE = 60.0  # seconds after which a process has shown that it can live
LOOPING = 5  # ends in a row before that are told as what they are
GOODBYE = 10.0  # seconds that processes have to leave at once
_DONE = frozenset({0, START_ME_AGAIN})
_MISCONFIGURED = 1


def delay_after(deaths: int) -> float:
    """Return the seconds to wait after so many ends in a row."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(deaths - 1, 30))


@dataclass(slots=True, kw_only=True)
class Slot:
    """One place for a process."""

    number: int
    child: Child | None = None
    start_at: float = 0.0
    deaths: int = 0  # in a row


class Supervisor:
    """Starts ``count`` processes by ``command`` and keeps that many running."""

    def __init__(
        self,
        count: int,
        command: Sequence[str],
        announce: Announcer,
        *,
        longest_silence: float,
        start: Callable[[Sequence[str], int, float], Child] = Child,
    ) -> None:
        self._slots = [Slot(number=number) for number in range(1, count + 1)]
        self._command = command
        self._announce = announce
        self._longest_silence = longest_silence
        self._start_child = start
        self._signals: list[int] = []
        self._told = 0  # how often to stop
        self._last_signal = 0
        self._kill_at: float | None = None
        self._was_ready = False  # some process, once
        self._to_replace: list[Slot] = []
        self._replacing: tuple[Slot, Child] | None = None
        self._exit_code = 0

    def run(self) -> int:
        """Keep the processes running until told to stop; return the exit code once all have ended."""
        with self._listening() as selector:
            while True:
                self._obey()
                self._start_what_is_due()
                if self._told and not any(slot.child for slot in self._slots):
                    self._say(What.DRIVER_STOPPED, "Stopped.")
                    return 128 + self._last_signal if self._told > 1 else self._exit_code
                self._wait(selector)
                self._hear()
                self._replace_next()

    def status(self) -> Status:
        """Return one status for all: live unless one is wedged, ready where one is and none is wedged."""
        children = [(slot.number, slot.child) for slot in self._slots if slot.child is not None]
        wedged = [text for number, child in children if (text := self._wedged(number, child))]
        running = [child.status for _, child in children]
        ready = sum(status.is_ready for status in running)
        words = "finishing what runs" if self._told else f"{ready} of {len(self._slots)} processes ready"
        return Status(
            is_live=not wedged,
            is_ready=bool(ready) and not wedged and not self._told,
            was_ready=self._was_ready,
            is_stopping=bool(self._told),
            text=wedged[0] if wedged else words if self._was_ready or self._told else STARTING,
            in_flight=sum(status.in_flight for status in running),
            seats=sum(status.seats for status in running),
        )

    def _wedged(self, number: int, child: Child) -> str:
        silence = time.monotonic() - child.heard_at
        if silence > self._longest_silence:
            return f"process {number} has not been heard of for {silence:.0f} s"
        return "" if child.status.is_live else f"process {number}: {child.status.text}"

    @contextmanager
    def _listening(self) -> Iterator[selectors.BaseSelector]:
        """Turn signals into something that a wait ends by; nothing is done inside a handler."""
        reading, writing = socket.socketpair()
        before = {number: signal.getsignal(number) for number in (*STOPPING, signal.SIGHUP, signal.SIGCHLD)}
        with reading, writing, selectors.DefaultSelector() as selector:
            for end in (reading, writing):
                end.setblocking(False)  # noqa: FBT003  # its only parameter
            selector.register(reading, selectors.EVENT_READ, None)
            wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
            for number in before:
                # nohup ignores it, and so do we.
                if before[number] is not signal.SIG_IGN:
                    signal.signal(number, lambda number, _: self._signals.append(number))
            try:
                yield selector
            finally:
                signal.set_wakeup_fd(wakeup)
                for number, handler in before.items():
                    if handler is not None:  # None: not made by Python, and not ours to restore
                        signal.signal(number, handler)
                for slot in self._slots:
                    if slot.child is not None:  # only where an error ended us
                        slot.child.socket.close()

    def _wait(self, selector: selectors.BaseSelector) -> None:
        """Wait for a signal, a report, or the next thing to do."""
        children = [slot.child for slot in self._slots if slot.child is not None]
        heard = [child for child in children if not child.is_silent]
        for child in heard:
            selector.register(child.socket, selectors.EVENT_READ, child)
        now = time.monotonic()
        moments = [slot.start_at for slot in self._slots if slot.child is None and not self._told]
        moments += [self._kill_at] if self._kill_at is not None else []
        ready = selector.select(max(0.0, min(moments) - now) if moments else None)
        for key, _ in ready:
            if key.data is None:
                with suppress(OSError):
                    while key.fileobj.recv(4096):  # type: ignore[union-attr]  # it is a socket
                        pass
        for child in heard:
            selector.unregister(child.socket)

    def _obey(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            # Without a terminal a hang-up is a request for fresh processes; with one the terminal is gone.
            if number == signal.SIGHUP and not os.isatty(0):
                self._to_replace = list(self._slots)
                self._say(What.DRIVER_NOTICE, "Replacing the processes one by one.")
            elif number != signal.SIGCHLD:
                self._stop(number)
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            self._kill_all()

    def _stop(self, number: int) -> None:
        self._told += 1
        self._last_signal = number
        if self._told == 1:
            running = sum(slot.child is not None for slot in self._slots)
            self._say(What.DRIVER_DRAINING, f"{_processes(running)} finish what they run.")
        if self._told <= 2:
            for slot in self._slots:
                if slot.child is not None:
                    slot.child.order(FINISH if self._told == 1 else LEAVE)
        else:
            self._kill_all()
        if self._told == 2:
            self._kill_at = time.monotonic() + GOODBYE

    def _kill_all(self) -> None:
        for slot in self._slots:
            if slot.child is not None:
                slot.child.kill()

    def _start_what_is_due(self) -> None:
        now = time.monotonic()
        for slot in self._slots:
            if slot.child is None and not self._told and slot.start_at <= now:
                try:
                    slot.child = self._start_child(self._command, slot.number, now)
                except OSError as error:
                    self._put_off(slot, f"Process {slot.number} could not be started: {error}.")
                else:
                    self._say(What.PROCESS_STARTED, f"Process {slot.number} started (pid {slot.child.pid}).")

    def _hear(self) -> None:
        now = time.monotonic()
        for slot in self._slots:
            if slot.child is not None:
                # Before the report is read: the last one is there once the process has ended.
                code = slot.child.poll()
                slot.child.listen(now)
                self._was_ready = self._was_ready or slot.child.status.was_ready
                if code is not None:
                    self._bury(slot, slot.child, code, now)

    def _bury(self, slot: Slot, child: Child, code: int, now: float) -> None:
        child.socket.close()
        slot.child = None
        if self._told:
            self._judge_last(slot, child, code)
        elif code in _DONE and child.status.was_ready:
            slot.deaths, slot.start_at = 0, now
            how = "has done its share" if code == 0 else "is worn out by bodies that do not stop"
            self._say(What.PROCESS_ENDED, f"Process {slot.number} {how}; a fresh one takes its place.")
        elif code == _MISCONFIGURED and not self._was_ready:
            # Its own sentence stands above. The others would say the same for ever.
            self._exit_code = code
            self._stop(0)
        else:
            if now - child.started_at >= STABLE:
                slot.deaths = 0
            self._put_off(slot, f"Process {slot.number} (pid {child.pid}) {words_of(code)}.")

    def _judge_last(self, slot: Slot, child: Child, code: int) -> None:
        # One that had not begun had nothing to lose.
        if code in _DONE or not child.status.was_ready or self._told > 1:
            return
        self._exit_code = 1
        text = f"Process {slot.number} (pid {child.pid}) {words_of(code)} while it finished what it ran."
        self._say(What.PROCESS_LOST, f"{text} Other workers run that when the leases lapse.")

    def _put_off(self, slot: Slot, text: str) -> None:
        slot.deaths += 1
        delay = delay_after(slot.deaths)
        slot.start_at = time.monotonic() + delay
        again = f"It is started again in {delay:g} s; what ran in it is taken back when its lease lapses."
        self._say(What.PROCESS_LOST, f"{text} {again}")
        if slot.deaths == LOOPING:
            loop = (
                f"Process {slot.number} has ended {LOOPING} times in a row soon after its start. It is started ever "
                f"more slowly, {LONGEST_DELAY:g} s apart at the most; what it printed last says why it ends."
            )
            self._say(What.PROCESS_LOOPING, loop)

    def _replace_next(self) -> None:
        """Let one process after the other finish; the next one once the fresh one takes jobs."""
        if self._replacing is not None and not self._is_replaced(*self._replacing):
            return
        self._replacing = None
        while self._to_replace and not self._told:
            slot = self._to_replace.pop(0)
            if slot.child is not None:
                slot.child.order(FINISH)
                self._replacing = slot, slot.child
                return

    def _is_replaced(self, slot: Slot, old: Child) -> bool:
        fresh = slot.child
        if slot.deaths:
            # New code that does not start must not take the old one's place everywhere.
            self._to_replace.clear()
            self._say(What.DRIVER_NOTICE, f"Process {slot.number} does not come back: the others stay as they are.")
            return True
        if fresh is None or fresh is old:
            return False
        return fresh.status.is_ready or time.monotonic() - fresh.started_at > self._longest_silence

    def _say(self, what: What, text: str) -> None:
        self._announce(DriverEvent(what=what, text=text))


def _processes(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"
