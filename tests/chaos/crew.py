"""The processes of a chaos run, and what is done to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from django_helisched import wiring
from django_helisched.models import Worker
from tests.chaos.story import SETTINGS, Span
from tests.crash.fleet import wait_until

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from tests.chaos.story import Story

SKEWS = (0, 0.5, 10, 3600, 400 * 86_400, -0.5, -10, -3600)  # seconds
OPTIONS = ("--json-logs", "--worker-id")
DRAINED_WITHIN = 60.0  # seconds; the longest body takes far less


@dataclass
class Member:
    """One process, from its start to its end."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    stopped: Span | None = None
    goes_on_at: float = 0.0
    is_draining: bool = False

    @property
    def is_free(self) -> bool:
        """Tell whether nothing has been done to it yet."""
        return self.stopped is None and not self.is_draining and self.process.poll() is None


class Crew:
    """Keeps so many schedulers going, whatever is done to them."""

    def __init__(self, env: Mapping[str, str], directory: Path, size: int, rng: random.Random, story: Story) -> None:
        self._env = {
            **env,
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "HELISCHED_TEST_DIR": str(directory),
            "HELISCHED_TEST_SETTINGS": json.dumps(SETTINGS),
            "PYTHONUNBUFFERED": "1",
        }
        self._directory = directory
        self._size = size
        self._rng = rng
        self._story = story
        self._members: list[Member] = []
        self._born = 0
        self._rests_until = 0.0

    def start(self, *arguments: str, size: int | None = None) -> None:
        """Start the processes, and return when each of them works."""
        self._members = [self._new(*arguments) for _ in range(size or self._size)]
        wait_until(self._is_at_work, "every process works")

    def working(self) -> list[Member]:
        """Return the members that claim and sweep now."""
        known = {
            name.partition(":")[0] for name in Worker.objects.exclude(state="stopped").values_list("id", flat=True)
        }
        return [member for member in self._members if member.is_free and member.name in known]

    def look(self) -> None:
        """Let those go on that have stood still for long enough, and put new ones in the places of the dead."""
        for member in self._members:
            if member.stopped is not None and time.monotonic() >= member.goes_on_at:
                self._let_go(member)
        if time.monotonic() < self._rests_until:
            return
        for place, member in enumerate(self._members):
            code = member.process.poll()
            if code is not None:
                self._check_end(member, code)
                self._members[place] = self._new()

    def kill(self) -> None:
        """Kill one: a working one, or one that stands still or drains."""
        victim = self._one_of(self.working() if self._rng.random() < 0.8 else self._alive())
        if victim is not None:
            self._kill(victim)

    def kill_all(self, seconds: float) -> None:
        """Kill all in one instant, and start none for so long."""
        self._rests_until = time.monotonic() + seconds
        for member in self._alive():
            self._kill(member)
        self._story.last_looks.append(wiring.job_store().now())
        self._story.counts["blackouts"] += 1

    def stop(self, seconds: float) -> None:
        """Let one stand still for so long."""
        victim = self._one_of(self.working())
        if victim is not None:
            victim.process.send_signal(signal.SIGSTOP)
            victim.stopped = Span(victim.name, wiring.job_store().now())
            victim.goes_on_at = time.monotonic() + seconds
            # By a clock of its own: one that stands still may hold SQLite's one lock, and this process waits for that.
            alarm = threading.Timer(seconds, victim.process.send_signal, [signal.SIGCONT])
            alarm.daemon = True
            alarm.start()
            self._story.counts["stops"] += 1

    def drain(self) -> None:
        """Ask one to finish."""
        victim = self._one_of(self.working())
        if victim is not None:
            self._drain(victim)

    def drain_all(self) -> None:
        """Ask everyone to finish, and return when all have. Whoever finishes sweeps no more."""
        self._story.last_looks.append(wiring.job_store().now())
        for member in self._alive():
            if member.stopped is not None:
                self._let_go(member)
        for member in self.working():
            self._drain(member)
        wait_until(self._is_over, "every process has finished what it ran and left", DRAINED_WITHIN)
        for member in self._members:
            self._check_end(member, member.process.returncode)
        self._members = []

    def kill_rest(self) -> None:
        """Leave no process behind."""
        for member in self._alive():
            member.process.kill()
            member.process.wait()

    def _is_at_work(self) -> bool:
        for member in self._members:
            code = member.process.poll()
            assert code is None, f"the process {member.name} ended with {code}: see {member.log}"
        return len(self.working()) == len(self._members)

    def _is_over(self) -> bool:
        # One that was still starting when the others were asked is asked as soon as it can hear.
        for member in self.working():
            self._drain(member)
        return not self._alive()

    def _new(self, *arguments: str) -> Member:
        name = f"m{self._born}"
        self._born += 1
        log = self._directory / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.child", "runscheduler", *OPTIONS, name, *arguments],
                env={**self._env, "CHAOS_SKEW": str(self._rng.choice(SKEWS))},
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=Path(__file__).parents[2],
            )
        return Member(name, process, log)

    def _alive(self) -> list[Member]:
        return [member for member in self._members if member.process.poll() is None]

    def _one_of(self, members: list[Member]) -> Member | None:
        # Some are always left to sweep: how long a recovery takes is a promise of the living.
        return self._rng.choice(members) if members and len(self.working()) > self._size // 2 else None

    def _kill(self, member: Member) -> None:
        member.process.kill()
        stood_still = member.stopped
        begin = wiring.job_store().now() if stood_still is None else stood_still.begin
        member.stopped = None
        self._story.spans.append(Span(member.name, begin, is_sudden=stood_still is None))
        self._story.counts["kills"] += 1
        member.process.wait()

    def _let_go(self, member: Member) -> None:
        span = member.stopped
        if span is not None and member.process.poll() is None:
            self._story.spans.append(replace(span, end=wiring.job_store().now()))
            member.process.send_signal(signal.SIGCONT)
        member.stopped = None

    def _drain(self, member: Member) -> None:
        member.process.send_signal(signal.SIGTERM)
        member.is_draining = True
        self._story.counts["terms"] += 1

    def _check_end(self, member: Member, code: int) -> None:
        was_killed = code == -signal.SIGKILL and any(span.worker == member.name for span in self._story.spans)
        if not was_killed and not (member.is_draining and code == os.EX_OK):
            self._story.surprises.append(f"the process {member.name} ended with {code}: see {member.log}")
