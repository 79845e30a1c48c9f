from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from benchmarks.charts import Bar, bar_chart

BARS = [Bar("huey", 2000), Bar("ours", 10_000, "ours"), Bar("a <b> & c", 500), Bar("plain SQL", 40_000, "limit")]


def test_a_chart_is_well_formed_and_says_what_it_shows():
    root = ET.fromstring(bar_chart("jobs & more", "higher is better", BARS))  # noqa: S314  # made one line above
    assert root.attrib["aria-label"] == "jobs & more"
    assert "a <b> & c" in [element.text for element in root.iter()]


def test_the_best_bar_is_on_top_and_lengths_are_in_proportion():
    assert names(bar_chart("t", "n", BARS)) == ["plain SQL", "ours", "huey", "a &lt;b&gt; &amp; c"]
    longest, ours, *_ = widths(bar_chart("t", "n", BARS))
    assert round(longest / ours, 2) == 4


def test_the_lowest_is_on_top_where_lower_is_better():
    assert names(bar_chart("t", "n", BARS, lower_is_better=True))[0] == "a &lt;b&gt; &amp; c"


def test_nothing_at_all_still_makes_a_bar_that_can_be_seen():
    assert widths(bar_chart("t", "n", [Bar("none", 0)])) == [1.0]


def names(svg):
    return re.findall(r'text-anchor="end">([^<]*)<', svg)


def widths(svg):
    return [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', svg)]
