"""Tables of docs/performance.md: one row for each peer, the median of the rounds in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.figures import ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.figures import Figure, Key

OURS = "django-helisched"
LIMIT = "plain SQL"  # how the names of those begin that are no peers
NOTHING = "–"


@dataclass(frozen=True)
class Column:
    """One figure of one case."""

    title: str
    case: str
    figure: str
    lower_is_better: bool = False


@dataclass(frozen=True)
class Group:
    """Columns that are read together."""

    title: str
    columns: tuple[Column, ...]


def _rates(*pairs: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(title, case, "jobs/s") for title, case in pairs)


def _costs(*triples: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(title, case, figure, lower_is_better=True) for title, case, figure in triples)


GROUPS = (
    Group(
        "Execution, jobs/s",
        _rates(
            ("empty, one at a time", "noop"),
            ("empty, eight at a time", "noop-8"),
            ("empty, two processes", "noop-2p"),
            ("writes one row", "write"),
            ("writes one row, sixteen at a time", "write-16"),
            ("1 ms, four at a time", "pause-4"),
            ("1 ms, 100 async", "pause-async"),
        ),
    ),
    Group(
        "Enqueue, jobs/s",
        _rates(
            ("autocommit", "enqueue-autocommit"),
            ("in the caller's transaction", "enqueue-transaction"),
            ("bulk", "enqueue-bulk"),
        ),
    ),
    Group(
        "Pickup, ms from the call of enqueue to the first line of the body",
        _costs(
            ("idle, p50", "pickup", "p50 ms"),
            ("idle, p99", "pickup", "p99 ms"),
            ("from the commit, p50", "pickup", "p50 ms after the commit"),
            ("300 jobs/s, p50", "pickup-busy", "p50 ms"),
            ("300 jobs/s, p99", "pickup-busy", "p99 ms"),
        ),
    ),
    Group(
        "Idle, memory, start",
        _costs(
            ("statements/s", "idle", "statements/s"),
            ("% of a core", "idle", "% of a core"),
            ("MB idle", "idle", "MB"),
            ("MB after the jobs", "memory", "MB"),
            ("jobs", "memory", "jobs"),
            ("start to first body, s", "start", "seconds"),
        ),
    ),
)
GROWTH = Group(
    "Empty jobs, jobs/s, in a table with other rows",
    _rates(("finished rows", "finished"), ("rows due in a year", "future")),
)


def group_table(group: Group, database: str, found: Mapping[Key, Figure], peers: Sequence[str]) -> list[str]:
    """Return the lines of one table, or nothing where no run has given any of its figures."""
    columns = [column for column in group.columns if _cells(column, database, found, peers)]
    if not columns:
        return []
    rows = []
    for peer in peers:
        cells = [_cells(column, database, found, [peer]) for column in columns]
        if any(cells):
            rows.append([peer, *(spelled(cell[peer]) if cell else NOTHING for cell in cells)])
    best = [_against_the_best(column, database, found, peers) for column in columns]
    if any(best):
        rows.append(["ours against the best peer", *(f"× {value:.2g}" if value else NOTHING for value in best)])
    return table(["", *(column.title for column in columns)], rows)


def growth_table(found: Mapping[Key, Figure]) -> list[str]:
    """Return the lines of the table of claims: milliseconds, and how many times the empty table's."""
    databases = sorted({key[0] for key in found if key[1] == "growth"})
    names = list(dict.fromkeys(key[3] for key in found if key[1] == "growth"))
    names.sort(key=lambda name: (name.endswith(", a look"), not name.startswith("empty")))
    rows = []
    for name in names:
        cells = [name]
        for database in databases:
            figure = found.get((database, "growth", OURS, name))
            empty = found.get((database, "growth", OURS, "empty, a look" if name.endswith(", a look") else "empty"))
            cells.append(NOTHING if not figure or not empty else _grown(figure.median, empty.median))
        rows.append(cells)
    return table(["rows around", *databases], rows) if rows else []


def _grown(milliseconds: float, empty: float) -> str:
    return f"{milliseconds:.2f} ms, × {milliseconds / empty:.2f}" if empty else f"{milliseconds:.2f} ms"


def _cells(column: Column, database: str, found: Mapping[Key, Figure], peers: Sequence[str]) -> dict[str, float]:
    keys = {peer: (database, column.case, peer, column.figure) for peer in peers}
    return {peer: found[key].median for peer, key in keys.items() if key in found}


def _against_the_best(column: Column, database: str, found: Mapping[Key, Figure], peers: Sequence[str]) -> float | None:
    cells = _cells(column, database, found, peers)
    others = [value for peer, value in cells.items() if peer != OURS and not peer.startswith(LIMIT)]
    if OURS not in cells or not others or column.figure == "jobs":
        return None
    best = min(others) if column.lower_is_better else max(others)
    return ratio(cells[OURS], best, lower_is_better=column.lower_is_better)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown; the first column is words, the others are numbers."""
    return [_line(titles), "|---" + "|---:" * (len(titles) - 1) + "|", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def spelled(value: float) -> str:
    """Return a number with three figures that mean something."""
    if value >= 100:
        digits = len(str(int(value))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}" if value >= 0.01 or not value else f"{value:.2g}"
