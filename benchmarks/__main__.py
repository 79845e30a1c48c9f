"""Measure the package, its peers and plain SQL on this machine.

    python -m benchmarks [growth] [--quick] [--rounds 5] [--peers ...] [--cases ...] [--databases ...]

The same by environment: BENCH_QUICK, BENCH_ROUNDS, BENCH_PEERS, BENCH_CASES,
BENCH_DATABASES, BENCH_ROWS (rows that growth piles up), BENCH_SECONDS. The figures go to
.bench/results/; `python -m benchmarks.page FILE` writes docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime

from benchmarks.cases import CASES, GROWTH, QUICK, Case, Sizes
from benchmarks.environments import HOME
from benchmarks.peers import NAMES
from benchmarks.session import Session

DATABASES = ("postgres", "sqlite", "mariadb")


def main() -> None:
    given = _parser().parse_args()
    cases = GROWTH if given.what == "growth" else CASES
    quick = given.quick or bool(os.environ.get("BENCH_QUICK"))
    sizes = QUICK if quick else Sizes()
    if given.rows:
        sizes = replace(sizes, piled=given.rows)
    if given.seconds:
        sizes = replace(sizes, seconds=given.seconds)
    begun = datetime.now(UTC)  # noqa: TID251  # the name of a file
    session = Session(
        cases=[case for case in cases if case.name in _chosen(given.cases, [case.name for case in cases])],
        peers=[name for name in NAMES if name in _peers(given.peers)],
        databases=_chosen(given.databases, DATABASES),
        rounds=1 if quick and not given.rounds else int(given.rounds or 5),
        sizes=sizes,
        what=given.what,
        quick=quick,
        command=" ".join([*_asked_by_environment(), "python -m benchmarks", *sys.argv[1:]]),
        file=HOME / "results" / f"{given.what}-{begun:%Y%m%d-%H%M%S}.json",
    )
    failed = session.run()
    print(f"benchmarks: {len(session.records) - failed} runs measured, {failed} failed; see {session.file}")
    sys.exit(1 if failed else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["speed", "growth"], default="speed")
    parser.add_argument("--quick", action="store_true", help="Tiny sizes and one round: proves only that it works.")
    parser.add_argument("--rounds", type=int, default=os.environ.get("BENCH_ROUNDS"))
    for name, words in (("peers", NAMES), ("cases", [*_names(CASES), *_names(GROWTH)]), ("databases", DATABASES)):
        chosen = os.environ.get(f"BENCH_{name.upper()}", "")
        parser.add_argument(f"--{name}", default=chosen, help=f"A list with commas. There are {', '.join(words)}.")
    rows = os.environ.get("BENCH_ROWS")
    parser.add_argument("--rows", type=int, default=int(rows) if rows else None, help="Rows that growth piles up.")
    seconds = os.environ.get("BENCH_SECONDS")
    parser.add_argument(
        "--seconds", type=float, default=float(seconds) if seconds else None, help="How long an execution run lasts."
    )
    return parser


def _asked_by_environment() -> list[str]:
    names = sorted(name for name in os.environ if name.startswith("BENCH_") and os.environ[name])
    return [f"{name}={os.environ[name]}" for name in names]


def _names(cases: tuple[Case, ...]) -> list[str]:
    return [case.name for case in cases]


def _peers(given: str) -> list[str]:
    return [name.replace("-", "_") for name in _words(given)] or list(NAMES)


def _chosen(given: str, there_are: list[str] | tuple[str, ...]) -> list[str]:
    words = _words(given)
    for word in words:
        if word not in there_are:
            raise SystemExit(f'benchmarks: "{word}" is none of {", ".join(there_are)}.')
    return [word for word in there_are if not words or word in words]


def _words(given: str) -> list[str]:
    return [word.strip() for word in given.split(",") if word.strip()]


if __name__ == "__main__":
    main()
