"""Medians, percentiles and ratios of what the rounds gave."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Figure:
    """What the rounds of one peer, one case and one database have in common."""

    median: float
    low: float
    high: float
    rounds: int


Key = tuple[str, str, str, str]  # database, case, peer, figure


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` (0 to 1) of the values do not exceed."""
    if not values:
        raise ValueError("no values have no percentile.")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(records: Iterable[Mapping[str, Any]]) -> dict[Key, Figure]:
    """Return the median, the lowest and the highest of each figure; records that failed count for nothing."""
    found: dict[Key, list[float]] = defaultdict(list)
    for record in records:
        for name, value in record.get("figures", {}).items():
            found[record["database"], record["case"], record["peer"], name].append(value)
    return {key: Figure(median(values), min(values), max(values), len(values)) for key, values in sorted(found.items())}


def ratio(ours: float, theirs: float, *, lower_is_better: bool = False) -> float:
    """Return how many times better ours is than theirs."""
    better, worse = (theirs, ours) if lower_is_better else (ours, theirs)
    return math.inf if not worse else better / worse
