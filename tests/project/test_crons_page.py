"""docs/crons.md: its snippets run, its table is the script's."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched import action, wiring
from django_helisched.crons.registry import CronJobs
from django_helisched.functions import registry
from django_helisched.models import Cron
from django_helisched.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "crons.md"
FUNCTIONS = ("poll_inbox", "send_digest", "back_up", "fetch_rates", "tidy", "send_report", "send_invoices")


def snippets() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Give the shop that the page speaks of: its functions and its tenants."""
    shop, jobs, models = (ModuleType(name) for name in ("shop", "shop.jobs", "shop.models"))
    for name in FUNCTIONS:
        parameters = "kind" if name == "send_digest" else ""
        exec(f"def {name}({parameters}): ...", jobs.__dict__)  # noqa: S102  # a function like the page's
        setattr(jobs, name, action(getattr(jobs, name)))
    tenants = [SimpleNamespace(slug="acme", digest_at="0 8 * * *", zone="Asia/Tokyo")]
    models.Tenant = SimpleNamespace(objects=SimpleNamespace(all=lambda: tenants))  # type: ignore[attr-defined]
    shop.jobs = jobs  # type: ignore[attr-defined]
    for module in (shop, jobs, models):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    yield shop
    for name in FUNCTIONS:
        registry._functions.pop(f"shop.jobs.{name}", None)


@pytest.mark.django_db
def test_the_snippets_run_from_the_first_to_the_last(shop, monkeypatch, capsys):
    found: list[CronJobs | None] = [None]
    monkeypatch.setattr("django_helisched.scheduler.spaces.find_declarations", lambda: found[0])
    names: dict[str, Any] = {"__name__": "shop.crons"}
    with wiring.replaced(clock=ManualClock(datetime(2026, 6, 1, tzinfo=UTC))):
        for snippet in snippets():
            if "@action" in snippet:
                # It is a module of its own, with a function that the others use.
                exec(compile(snippet, "docs/crons.md", "exec"), {"__name__": "shop.page"})  # noqa: S102
                registry._functions.pop("shop.page.poll_inbox")
                continue
            exec(compile(snippet, "docs/crons.md", "exec"), names)  # noqa: S102
            if isinstance(names.get("crons"), CronJobs):
                found[0] = names["crons"]
    rows = {(row.source, row.space, row.name): row for row in Cron.objects.all()}
    assert set(rows) == {
        ("operator", "", "nightly"),
        ("operator", "acme", "probe"),
        ("api", "acme", "digest"),
        ("provider:tenants", "acme", "digest"),
    }
    assert rows["operator", "acme", "probe"].archived_at is not None
    assert rows["operator", "", "nightly"].spec == '{"expr":"30 3 * * *","kind":"cron"}'
    assert "0 missed, 0 more than one call takes" in capsys.readouterr().out


def test_every_option_and_every_policy_has_a_line():
    from django_helisched.crons.cron import CatchUp, Overlap
    from django_helisched.crons.options import CronOptions

    text = PAGE.read_text(encoding="utf-8")
    for name in CronOptions.__optional_keys__:
        assert re.search(rf"^\| .*`{name}`.* \|", text, flags=re.MULTILINE), name
    for word in [*CatchUp, *Overlap]:
        assert f'`"{word}"`' in text, word


def test_our_own_column_of_the_comparison_is_what_we_answer():
    from benchmarks import dst

    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| DST-")]
    told = dst.faults()
    assert len(rows) == len(told)
    for line, case in zip(rows, told, strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[:2] == [case["id"], f"`{case['expr']}` {case['tz']}"]
        assert dst.verdict(case, dst.ours(case)) == cells[2] == "right"


def test_the_rules_of_the_comparison_have_as_many_cases_as_the_table_says():
    from benchmarks import dst

    decided = dst.judged()
    text = PAGE.read_text(encoding="utf-8")
    for rule, words in dst.RULES.items():
        cases = [case for case in decided if case["rule"].split()[0] == rule]
        [line] = [line for line in text.splitlines() if line.startswith(f"| {words} |")]
        assert [int(cell) for cell in line.strip("| ").split("|")[1:3]] == [len(cases)] * 2
        assert all(dst.ours(case) == case["next"] for case in cases)
