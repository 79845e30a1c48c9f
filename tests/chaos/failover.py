"""``python -m tests.chaos.failover``: a working fleet loses its PostgreSQL primary, thrice, each time in another way.

The address names both servers of a pair, and asks for the one that takes
writes. Commits wait for the replica, so whatever was acknowledged must be there
in the end; the audit of the chaos run says whether it is.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.crash.clusters import OWNER, Cluster
from tests.crash.fleet import wait_until

if TYPE_CHECKING:
    from tests.chaos.story import Story

STEADY = float(os.environ.get("FAILOVER_STEADY", "5"))  # seconds of work between two blows
DOWN = float(os.environ.get("FAILOVER_DOWN", "20"))  # seconds without any server
BACK_WITHIN = 10.0  # seconds from a server that takes writes to the first job that is done
SIZE = 3  # schedulers
ENQUEUE_EVERY = 0.05  # seconds


class Caller:
    """Enqueues all the time, as a web process does that answers its users with an error when it must."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._call, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _call(self) -> None:
        from django.db import Error, connection

        from tests.chaos import jobs as bodies

        rng = random.Random(1)
        while not self._over.wait(ENQUEUE_EVERY):
            body = rng.choice([bodies.enter, bodies.tell, bodies.tell_once])
            try:
                job = body.using(on_complete=bodies.ended, context="c").enqueue(rng.choice([0, 0.1, 1]), "fine")
                self._story.enqueued.append(job.pk)
            except Error:  # whether it is there nobody knows; it was not promised
                self._story.counts["refused"] += 1
                connection.close()
        connection.close()


class Failover:
    """The pair of servers, and the blows."""

    def __init__(self) -> None:
        self.first, self.second = Cluster("first"), Cluster("second")
        self.figures: list[str] = []
        self.breaches: list[str] = []

    def create(self) -> None:
        self.first.create()
        self.second.follow(self.first)

    def crash(self) -> None:
        """The primary dies, and its replica is promoted two seconds later."""
        self.first.stop("immediate")
        threading.Event().wait(2)
        self.second.promote()
        self._measure("a primary that crashed, its replica promoted")

    def switch_over(self) -> None:
        """The primary turns read-only and stays up, and a new replica takes its place."""
        self.first.follow(self.second)
        self.second.configure("default_transaction_read_only", "on")
        self.first.promote()
        self._measure("a primary that turned read-only and stayed, its replica promoted")

    def restart(self) -> None:
        """The only server in use is away for a while."""
        # An idle seat may keep its connection until it gets a job; it closes it then, unused.
        used = self.second.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'test%' "
            "AND state_change > now() - interval '2 seconds'"
        )
        self.figures.append(f"connections still in use on the read-only server {STEADY:g} s later: {used}")
        if used:
            self.breaches.append(f"{used} connections to the read-only server are still in use")
        self.second.stop("immediate")
        self.first.stop("fast")
        threading.Event().wait(DOWN)
        self.first.start()
        self._measure(f"a server that was away for {DOWN:g} s")

    def remove(self) -> None:
        self.first.remove()
        self.second.remove()

    def _measure(self, blow: str) -> None:
        from django.db import connection

        from tests.app.models import Ledger

        connection.close()
        begun, before = time.monotonic(), Ledger.objects.count()
        wait_until(lambda: Ledger.objects.count() > before, "a mutation has taken effect")
        seconds = time.monotonic() - begun
        self.figures.append(f"{blow}: work again {seconds:.2f} s later")
        if seconds > BACK_WITHIN:
            self.breaches.append(f"{blow}: work again only {seconds:.2f} s later")


def run(servers: Failover, directory: Path) -> None:
    """Let a fleet work through all blows, and audit."""
    from django.db import connection

    from tests.chaos.audit import breaches
    from tests.chaos.crew import Crew
    from tests.chaos.evidence import gather
    from tests.chaos.figures import lines
    from tests.chaos.run import finish
    from tests.chaos.story import Story

    story = Story()
    env = {**os.environ, "HELISCHED_TEST_NAME": str(connection.settings_dict["NAME"])}
    crew = Crew(env, directory, SIZE, random.Random(1), story)
    try:
        crew.start()
        caller = Caller(story)
        for blow in (servers.crash, servers.switch_over, servers.restart):
            threading.Event().wait(STEADY)
            blow()
        threading.Event().wait(STEADY)
        caller.stop()
        crew.drain_all()
        finish(crew, story)
    finally:
        crew.kill_rest()
    found = gather(directory)
    servers.figures += [f"calls that the outage refused: {story.counts['refused']}", *lines(story, found)]
    servers.breaches += breaches(story, found)


def main() -> int:
    servers = Failover()
    directory = Path(tempfile.mkdtemp(prefix="helisched_failover_"))
    ports = f"{servers.first.port},{servers.second.port}"
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "HELISCHED_TEST_DB": "postgres",
        "HELISCHED_TEST_POSTGRES_HOST": "127.0.0.1,127.0.0.1",
        "HELISCHED_TEST_POSTGRES_PORT": ports,
        "HELISCHED_TEST_POSTGRES_USER": OWNER,
        "HELISCHED_TEST_OPTIONS": json.dumps({"target_session_attrs": "read-write"}),
    }
    say(f"failover: servers on ports {ports}, logs in {directory}")
    try:
        servers.create()
        django.setup()
        from django.db import connection

        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        run(servers, directory)
    finally:
        servers.remove()
    for line in [*servers.figures, *(f"BREACH: {breach}" for breach in servers.breaches)]:
        say(line)
    say(f"{len(servers.breaches)} breaches")
    return 1 if servers.breaches else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
