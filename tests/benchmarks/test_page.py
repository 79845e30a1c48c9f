from __future__ import annotations

import json
import sys

import pytest

from benchmarks import page
from benchmarks.figures import summary

FACTS = {
    "django-helisched postgres": {"python": "3.12.1", "django": "6.0", "database": "PostgreSQL 15", "fsync": "on"},
}


def test_a_part_is_written_at_the_end_of_a_page_that_has_none(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("# Figures\n\nText.\n")
    page.write_part(file, "speed", ["## Speed"])
    assert file.read_text() == "# Figures\n\nText.\n\n<!-- benchmarks: speed -->\n\n## Speed\n\n<!-- end of speed -->\n"


def test_only_what_stands_between_the_marks_is_replaced(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("before\n\n<!-- benchmarks: speed -->\nold\n<!-- end of speed -->\n\nafter\n")
    page.write_part(file, "speed", ["new"])
    page.write_part(file, "speed", ["newer"])
    assert file.read_text() == "before\n\n<!-- benchmarks: speed -->\n\nnewer\n\n<!-- end of speed -->\n\nafter\n"


def test_a_part_says_command_versions_durability_and_load():
    told = session(record("django-helisched", 9000), record("huey", 3000))
    text = "\n".join(page.part(told, summary(told["records"])))
    for words in ("make bench", "medians of 1 rounds", "PostgreSQL 15 (fsync on)", "Python 3.12.1", "load", "× 3"):
        assert words in text


def test_a_weaker_promise_and_a_run_that_failed_are_told():
    failed = {"round": 1, "database": "postgres", "case": "write", "peer": "huey", "load": 0.5, "error": "stuck\nlog"}
    told = session(record("huey", 3000), failed)
    text = "\n".join(page.part(told, summary(told["records"])))
    assert "a killed worker's job is lost" in text
    assert "- huey, write on PostgreSQL, round 2: no figure, stuck." in text


def test_charts_are_drawn_where_two_can_be_compared():
    told = session(record("django-helisched", 9000), record("huey", 3000))
    assert list(page.charts(summary(told["records"]))) == ["noop-postgres.svg"]
    assert page.charts(summary(told["records"][:1])) == {}


def test_figures_of_a_quick_session_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "speed.json"
    file.write_text(json.dumps({**session(record("huey", 1)), "quick": True}))
    monkeypatch.setattr(sys, "argv", ["page", str(file), "--page", str(tmp_path / "page.md")])
    with pytest.raises(SystemExit, match="measured with --quick"):
        page.main()


def test_a_session_becomes_a_page_and_its_charts(tmp_path, monkeypatch):
    file, written = tmp_path / "speed.json", tmp_path / "page.md"
    file.write_text(json.dumps(session(record("django-helisched", 9000), record("huey", 3000))))
    written.write_text("# Figures\n")
    charts = tmp_path / "charts"
    monkeypatch.setattr(sys, "argv", ["page", str(file), "--page", str(written), "--charts", str(charts)])
    page.main()
    assert "charts/noop-postgres.svg" in written.read_text()
    assert (charts / "noop-postgres.svg").read_text().startswith("<svg")


def session(*records):
    machine = {"cores": 2, "processor": "a processor", "kernel": "6"}
    told = {"what": "speed", "quick": False, "command": "make bench", "machine": machine, "facts": FACTS}
    return {**told, "records": list(records)}


def record(peer, rate):
    place = {"round": 0, "database": "postgres", "case": "noop", "peer": peer, "load": 0.5}
    return {**place, "figures": {"jobs/s": rate}}


def test_the_figures_of_several_sessions_are_put_together(tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    told = {"what": "speed", "quick": False, "command": "one", "facts": {"a": 1}, "records": [{"case": "noop"}]}
    first.write_text(json.dumps(told))
    second.write_text(json.dumps(told | {"command": "two", "facts": {"b": 2}, "records": [{"case": "write"}]}))
    merged = page.together([first, second])["speed"]
    assert merged["command"] == "one`, `two"
    assert merged["facts"] == {"a": 1, "b": 2}
    assert [record["case"] for record in merged["records"]] == ["noop", "write"]
