"""Bar charts as SVG text: no library, readable on light and on dark."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from benchmarks.tables import spelled

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, LABELS, NUMBERS = 760, 210, 110  # pixels: all of it, the names on the left, the numbers on the right
ROW, BAR, TOP, BOTTOM = 26, 16, 58, 16
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 }
.note { fill: #57606a }
.bar { fill: #b6c2cf } .ours { fill: #1f6feb } .limit { fill: none; stroke: #8c959f; stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .note { fill: #9198a1 }
  .bar { fill: #57606a } .ours { fill: #4493f8 }
}
""".strip()


@dataclass(frozen=True)
class Bar:
    """One peer's figure; ``kind`` is "bar", "ours" or "limit"."""

    name: str
    value: float
    kind: str = "bar"


def bar_chart(title: str, note: str, bars: Sequence[Bar], *, lower_is_better: bool = False) -> str:
    """Return an SVG with the best bar on top. The limit of plain SQL is drawn in outline."""
    ordered = sorted(bars, key=lambda bar: bar.value, reverse=not lower_is_better)
    height = TOP + ROW * len(ordered) + BOTTOM
    most = max((bar.value for bar in ordered), default=0) or 1
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'aria-label="{escape(title)}">'
        ),
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<text class="title" x="0" y="20">{escape(title)}</text>',
        f'<text class="note" x="0" y="42">{escape(note)}</text>',
    ]
    for number, bar in enumerate(ordered):
        lines += _row(bar, TOP + ROW * number, most)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _row(bar: Bar, top: int, most: float) -> list[str]:
    length = (WIDTH - LABELS - NUMBERS) * bar.value / most
    middle = top + ROW - 9
    return [
        f'<text x="{LABELS - 10}" y="{middle}" text-anchor="end">{escape(bar.name)}</text>',
        (
            f'<rect class="{bar.kind}" x="{LABELS}" y="{top + (ROW - BAR) // 2}" width="{max(1.0, length):.1f}" '
            f'height="{BAR}" rx="2"/>'
        ),
        f'<text x="{LABELS + max(1.0, length) + 8:.1f}" y="{middle}">{spelled(bar.value)}</text>',
    ]
