"""Say what crons cost: many due at once, many idle, one that was down for a year.

    python benchmarks/crons.py [--due 1000] [--idle 10000]

Runs on the database that tests.settings selects (HELISCHED_TEST_DB), in a
database of its own that is removed afterwards. One process without seats does
all of it, with the code of runscheduler.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOOKS = 200  # looks at idle crons
HOURLY = '{"expr":"0 * * * *","kind":"cron"}'
EVERY_SECOND = '{"kind":"interval","ms":1000}'
SECONDS_OF_A_YEAR = 365 * 24 * 3600

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
sys.path.insert(0, str(ROOT))


class Bench:
    """Crons on the database of the settings, and one driver that fires them."""

    def __init__(self) -> None:
        from django_helisched import wiring  # the settings come first
        from django_helisched.driver import Driver, DriverConfig, ThreadSeats

        self.crons = wiring.cron_store()
        self.now = self.crons.now()
        config = DriverConfig(worker_id="benchmark")
        self.driver = Driver(wiring.job_store(), self.crons, config, seats=ThreadSeats(0), observe=lambda _: None)

    def store(self, count: int, **given: Any) -> None:
        """Store crons in the place of those before."""
        from django_helisched.models import Cron, Fire, Job

        for model in (Fire, Job, Cron):
            model.objects.all().delete()
        common = {"spec": HOURLY, "tz": "Europe/Paris", "fn_path": "tests.app.jobs.note", "args": ["x"]}
        facts = {"anchor": self.now, "counted_since": self.now, "declared_at": self.now}
        rows = [Cron(source="api", name=f"cron {number}", **{**common, **facts, **given}) for number in range(count)]
        Cron.objects.bulk_create(rows, batch_size=1000)

    def fire_all(self) -> tuple[int, float]:
        """Tick until nothing is due; return the jobs made and the seconds it took."""
        begun, made = time.perf_counter(), 0
        while fired := self.driver.tick().fired:
            made += fired
        return made, time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--due", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=10_000)
    given = parser.parse_args()

    import django  # the settings come first
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    made = setup_databases(verbosity=0, interactive=False)
    try:
        bench = Bench()
        bench.store(given.due, next_run_at=bench.now)
        fired, seconds = bench.fire_all()
        print(f"{connection.vendor}: {fired} crons due at one instant are fired in {seconds:.2f} s")
        bench.store(given.idle, next_run_at=bench.now + timedelta(days=1))
        bench.driver.tick()
        begun = time.perf_counter()
        for _ in range(LOOKS):
            bench.crons.next_due_at()
        each = (time.perf_counter() - begun) / LOOKS
        print(f"{connection.vendor}: one look at {given.idle} idle crons takes {each * 1000:.2f} ms")
        overdue = bench.now - timedelta(seconds=SECONDS_OF_A_YEAR)
        bench.store(1, spec=EVERY_SECOND, catch_up="fire_all", next_run_at=overdue)
        fired, seconds = bench.fire_all()
        print(f"{connection.vendor}: a cron of every second, down for a year: {fired} jobs in {seconds:.2f} s")
    finally:
        connection.close()
        teardown_databases(made, verbosity=0)


if __name__ == "__main__":
    main()
