"""Write measured figures into docs/performance.md, and draw their charts.

    python -m benchmarks.page .bench/results/speed-....json .bench/results/growth-....json

What stands between the marks of a part is replaced, everything else stays. The
figures of several sessions of one kind are put together. Those of a quick
session are refused: they prove only that it works.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cases import CASES
from benchmarks.charts import Bar, bar_chart
from benchmarks.environments import ROOT
from benchmarks.figures import summary
from benchmarks.peers import NAMES, peer_named
from benchmarks.tables import GROUPS, GROWTH, LIMIT, OURS, group_table, growth_table, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.figures import Figure, Key

PAGE, CHARTS = ROOT / "docs" / "performance.md", ROOT / "docs" / "charts"
TITLES = {"postgres": "PostgreSQL", "sqlite": "SQLite", "mariadb": "MariaDB"}
DRAWN = ("noop", "write", "enqueue-autocommit", "enqueue-bulk", "pickup")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--charts", type=Path, default=CHARTS)
    given = parser.parse_args()
    for what, told in together(given.files).items():
        found = summary(told["records"])
        if what == "speed":
            given.charts.mkdir(parents=True, exist_ok=True)
            for name, svg in charts(found).items():
                (given.charts / name).write_text(svg)
        write_part(given.page, what, part(told, found))
        print(f"benchmarks: wrote the part {what} of {given.page}")


def together(files: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return what was told by the sessions of each kind, as if one session had told it."""
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        told = json.loads(file.read_text())
        if told["quick"]:
            raise SystemExit(f"benchmarks: {file} was measured with --quick; that is no figure to show.")
        earlier = found.get(told["what"])
        if earlier is None:
            found[told["what"]] = told
        else:
            earlier["command"] = f"{earlier['command']}`, `{told['command']}"
            earlier["facts"] |= told["facts"]
            earlier["records"] += told["records"]
    return found


def write_part(page: Path, name: str, lines: Sequence[str]) -> None:
    """Replace what stands between the marks of a part; a page without them gets it at its end."""
    begin, end = f"<!-- benchmarks: {name} -->", f"<!-- end of {name} -->"
    text = page.read_text()
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    page.write_text("\n".join([before + begin, "", *lines, "", end]) + after)


def part(told: Mapping[str, Any], found: Mapping[Key, Figure]) -> list[str]:
    """Return the lines of one part: how it was measured, then tables for each database."""
    peers = [peer_named(name).name for name in NAMES]
    rounds = sorted({figure.rounds for figure in found.values()})
    speed = told["what"] == "speed"
    lines = ["## Speed beside others" if speed else "## Growth", "", f"`{told['command']}`: {_how(told, rounds)}", ""]
    if not speed:
        lines += [*growth_table(found), ""]
    for database in [name for name in TITLES if any(key[0] == name for key in found)]:
        for group in GROUPS if speed else (GROWTH,):
            rows = group_table(group, database, found, peers)
            if rows:
                lines += [f"### {TITLES[database]}: {group.title}", "", *rows, ""]
        if speed:
            lines += _shown(found, database)
    return [*lines, *_notes(found), *_failures(told)]


def charts(found: Mapping[Key, Figure]) -> dict[str, str]:
    """Return the SVG of each chart by its file's name."""
    drawn = {}
    for case in (case for case in CASES if case.name in DRAWN):
        for database, title in TITLES.items():
            bars = [
                Bar(peer, figure.median, _kind(peer))
                for (where, name, peer, what), figure in found.items()
                if (where, name, what) == (database, case.name, case.best)
            ]
            if len(bars) > 1:
                note = f"{case.best}, {'lower' if case.lower_is_better else 'higher'} is better"
                drawn[f"{case.name}-{database}.svg"] = bar_chart(
                    f"{title}: {case.title}", note, bars, lower_is_better=case.lower_is_better
                )
    return drawn


def _kind(peer: str) -> str:
    return "ours" if peer == OURS else "limit" if peer.startswith(LIMIT) else "bar"


def _shown(found: Mapping[Key, Figure], database: str) -> list[str]:
    names = [name for name in charts(found) if name.endswith(f"-{database}.svg")]
    return [line for name in names for line in (f"![{name.removesuffix('.svg')}](charts/{name})", "")]


def _how(told: Mapping[str, Any], rounds: Sequence[int]) -> str:
    machine, facts = told["machine"], told["facts"]
    versions = sorted({f"{fact['database']} ({_durability(fact)})" for fact in facts.values()})
    pythons = sorted({f"Python {fact['python']}, Django {fact['django']}" for fact in facts.values()})
    loads = [record["load"] for record in told["records"]]
    return (
        f"medians of {_range(rounds)} rounds, everybody in turn in each; "
        f"{machine['cores']} cores of {machine['processor']}; "
        f"{'; '.join(versions)}; {', '.join(pythons)}; load while it ran {min(loads):.1f} to {max(loads):.1f}."
    )


def _range(rounds: Sequence[int]) -> str:
    return f"{rounds[0]} to {rounds[-1]}" if len(rounds) > 1 else str(rounds[0] if rounds else 0)


def _durability(fact: Mapping[str, Any]) -> str:
    aside = {"python", "django", "peer", "database"}
    return ", ".join(f"{name} {value}" for name, value in fact.items() if name not in aside)


def _notes(found: Mapping[Key, Figure]) -> list[str]:
    measured = {key[2] for key in found}
    told = [peer for peer in map(peer_named, NAMES) if peer.name in measured and peer.note]
    return [*(f"- {peer.name} ({_asked(peer.requirements)}): {peer.note}." for peer in told), ""] if told else []


def _asked(requirements: Sequence[str]) -> str:
    return requirements[0] if requirements else "nothing installed"


def _failures(told: Mapping[str, Any]) -> list[str]:
    failed = [record for record in told["records"] if "error" in record]
    return [
        f"- {record['peer']}, {record['case']} on {TITLES[record['database']]}, round {record['round'] + 1}: "
        f"no figure, {record['error'].splitlines()[0]}."
        for record in failed
    ]


__all__ = ["charts", "main", "part", "spelled", "write_part"]

if __name__ == "__main__":
    main()
