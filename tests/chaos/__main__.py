"""``python -m tests.chaos``: the environment says how long and on what; exits 1 on any breach."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

import django


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    os.environ["HELISCHED_TEST_DB"] = os.environ.get("CHAOS_DB", "postgres")
    seconds = float(os.environ.get("CHAOS_SECONDS", "60"))
    slack = float(os.environ.get("CHAOS_SLACK", "0"))
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    directory = Path(tempfile.mkdtemp(prefix="helisched_chaos_"))
    django.setup()

    from django.db import connection

    from tests.chaos.run import chaos

    say(f"chaos: {connection.vendor}, {seconds:g} s, CHAOS_SEED={seed}, logs in {directory}")
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        env = {**os.environ, "HELISCHED_TEST_NAME": str(connection.settings_dict["NAME"])}
        figures, breaches = chaos(env, directory, seconds=seconds, seed=seed, slack=slack)
    finally:
        connection.creation.destroy_test_db("", verbosity=0)
    for line in figures:
        say(line)
    for breach in breaches:
        say(f"BREACH: {breach}")
    say(f"{len(breaches)} breaches")
    return 1 if breaches else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
