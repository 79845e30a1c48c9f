"""Compare cron libraries on the hours in which the clocks change, and print the table of docs/crons.md.

    python benchmarks/dst.py

The first table has the faults that libraries have shown in public; the second counts, rule
by rule, the answers that are the same as ours where libraries disagree. Each library is
installed into an environment of its own that is
thrown away; none of them is needed by the project, whose own answers come from this
interpreter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PEERS = {"croniter": "croniter alone", "apscheduler": "APScheduler", "celery": "celery's crontab", "cronsim": "cronsim"}
OURS = "django-helisched"
GAP = {
    "id": "DST-17",
    "expr": "0 2 * * *",
    "tz": "US/Eastern",
    "start_utc": "2013-03-10T06:59:00Z",
    "next_utc": ["2013-03-10T07:00:00Z", "2013-03-11T06:00:00Z"],
}

RULES = {
    "R0": "no time is lost or repeated",
    "R1": "a time lost in a gap fires later by the length of the gap",
    "R2": "all 24 hours selected: lost times are dropped",
    "R3": "a repeated time fires once, the first time",
    "R4": "all 24 hours selected: both passes fire",
    "R5": "asked within the changed hour",
}

sys.path.insert(0, str(ROOT))


def faults() -> list[dict[str, Any]]:
    """Return the DST faults in the order of their numbers."""
    told = [case for case in lines_of("faults") if case["id"].startswith("DST")]
    return sorted([*told, GAP], key=lambda case: str(case["id"]))


def judged() -> list[dict[str, Any]]:
    """Return the cases that a rule about clocks decides, as questions like the faults."""
    asked = [case for case in lines_of("judged") if case["rule"].split()[0] in RULES]
    return [{**case, "start_utc": case["after_utc"], "next_utc": case["next"]} for case in asked]


def lines_of(name: str) -> list[dict[str, Any]]:
    text = (ROOT / f"tests/cases/cron_{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def peer(name: str, asked: list[dict[str, Any]]) -> tuple[str, list[Any]]:
    """Install one library into a new environment and return its version and its answers."""
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place) / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", name, "tzdata")
        version = run(python, "-c", f"from importlib.metadata import version; print(version({name!r}))").strip()
        script = Path(__file__).with_name("dst_peers.py")
        return version, json.loads(run(python, script, name, given=json.dumps(asked)))


def run(*command: str | Path, given: str | None = None) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def ours(case: dict[str, Any]) -> list[str]:
    from django_helisched.crons.occurrences import compute_next_run

    at = datetime.fromisoformat(case["start_utc"])
    found = []
    for _ in case["next_utc"]:
        at = compute_next_run({"kind": "cron", "expr": case["expr"]}, case["tz"], at) or at
        found.append(f"{at:%Y-%m-%dT%H:%M:%SZ}")
    return found


def verdict(case: dict[str, Any], found: list[str] | str) -> str:
    """Return "right", or the first thing that is not."""
    if isinstance(found, str):
        return found[:60]
    for wanted, got in zip(case["next_utc"], [*found, *["no fire"] * len(case["next_utc"])], strict=False):
        if wanted != got:
            return f"{got} for {wanted[11:16]}" if got != "no fire" else f"no fire at {wanted[:16]}"
    return "right"


def main() -> None:
    import django_helisched

    told, decided = faults(), judged()
    columns = {f"{OURS} {django_helisched.__version__}": [ours(case) for case in [*told, *decided]]}
    for name, title in PEERS.items():
        version, answers = peer(name, [*told, *decided])
        columns[f"{title} {version}"] = answers
    show_table(["case", "expression, zone", *columns])
    for number, case in enumerate(told):
        cells = [verdict(case, answers[number]) for answers in columns.values()]
        show([case["id"], f"`{case['expr']}` {case['tz']}", *cells])
    print()
    show_table(["rule", "cases", *columns])
    for rule, words in RULES.items():
        numbers = [number for number, case in enumerate(decided, len(told)) if case["rule"].split()[0] == rule]
        same = [
            sum(answers[number] == decided[number - len(told)]["next"] for number in numbers)
            for answers in columns.values()
        ]
        show([words, str(len(numbers)), *map(str, same)])


def show_table(titles: list[str]) -> None:
    show(titles)
    print("|---" * len(titles) + "|")


def show(cells: list[str]) -> None:
    print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
