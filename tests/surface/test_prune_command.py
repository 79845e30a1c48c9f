"""manage.py helisched prune, the settings behind it, and what the checks say of them."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import override_settings

from django_helisched import conf, wiring
from django_helisched.checks import check_configuration
from django_helisched.inspection import pruning
from django_helisched.jobs.job import State
from django_helisched.jobs.retention import Keep, Retention
from django_helisched.management.progress_bar import ProgressBar
from django_helisched.models import Job
from django_helisched.scheduler.pruning import configured
from django_helisched.stores.base import WorkerReport
from django_helisched.stores.orm import OrmJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START
from django_helisched.testing.contract.pruning import finished
from tests.app.models import Pin
from tests.surface.asking import ask, data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_helisched.scheduler.pruning import Step

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def clock() -> Iterator[ManualClock]:
    clock = ManualClock(START)
    with wiring.replaced(clock=clock):
        yield clock


@pytest.fixture
def store(clock: ManualClock) -> OrmJobStore:
    return OrmJobStore("default", clock)


@pytest.fixture
def old(store: OrmJobStore, clock: ManualClock) -> None:
    """Store twelve successes, two failures and a worker that are old, and a success that is not."""
    for _ in range(12):
        finished(store)
    for _ in range(2):
        finished(store, State.FAILED)
    store.report_worker(WorkerReport(id="gone", started_at=START))
    clock.advance(31 * DAY)
    finished(store)


def counts(*words: str) -> dict[str, int]:
    rows: dict[str, int] = data("prune", *words)["rows"]
    return {kind: number for kind, number in rows.items() if number}


def quiet(step: Step, rows: int) -> None:
    del step, rows


@pytest.mark.usefixtures("old")
def test_old_rows_are_deleted_and_counted_by_outcome():
    assert [line.split() for line in ask("prune")] == [
        ["rows", "deleted"],
        ["success", "jobs", "12"],
        ["failed", "jobs", "2"],
        ["canceled", "jobs", "0"],
        ["batches", "0"],
        ["fires", "0"],
        ["workers", "1"],
    ]
    assert Job.objects.count() == 1
    assert counts() == {}


@pytest.mark.usefixtures("old")
def test_a_dry_run_counts_the_same_and_deletes_nothing():
    lines = ask("prune", "--dry-run")
    assert lines[0].split() == ["rows", "would", "be", "deleted"]
    assert lines[-1] == "Nothing was deleted."
    assert Job.objects.count() == 15
    assert counts("--dry-run") == counts() == {"success": 12, "failed": 2, "workers": 1}


@pytest.mark.usefixtures("old")
def test_a_count_looks_at_so_many_rows_and_says_that_there_may_be_more():
    answer = pruning.prune(dry_run=True, watch=quiet, most=10)
    assert (answer.data["rows"]["success"], answer.data["or_more"]) == (10, ["success"])
    assert answer.lines[1].split() == ["success", "jobs", "10+"]
    assert Job.objects.count() == 15


@pytest.mark.usefixtures("old")
def test_what_a_table_of_the_project_keeps_is_told():
    Pin.objects.create(job=Job.objects.filter(state="failed").earliest("id"))
    lines = ask("prune")
    assert lines[2].split() == ["failed", "jobs", "1"]
    assert lines[-1] == "1 more had to stay: rows of this project's own tables point at them."


@pytest.mark.usefixtures("old")
def test_stopped_half_way_it_says_what_was_done():
    def stop(step: Step, rows: int) -> None:
        if step.kind == "failed":
            raise KeyboardInterrupt

    answer = pruning.prune(dry_run=False, watch=stop)
    assert (answer.data["rows"]["success"], answer.data["stopped"], answer.ok) == (12, True, False)
    assert answer.lines[-1].startswith("Stopped before the end.")
    assert counts() == {"workers": 1}


@pytest.mark.usefixtures("old")
@override_settings(HELISCHED={"RETENTION": None})
def test_where_everything_is_kept_nothing_goes(clock: ManualClock):
    with wiring.replaced(clock=clock):
        assert counts() == {}
    assert Job.objects.count() == 15


@pytest.mark.usefixtures("old")
@override_settings(HELISCHED={"RETENTION": {"success": {"count": 3}, "failed": None, "workers": None}})
def test_numbers_bound_as_the_settings_say(clock: ManualClock):
    with wiring.replaced(clock=clock):
        assert counts() == {"success": 10}
    assert Job.objects.count() == 5


def test_steps_tell_how_far_they_have_come(store: OrmJobStore, clock: ManualClock):
    for _ in range(250):
        finished(store)
        clock.advance(1)
    clock.advance(31 * DAY)
    shares: list[float] = []

    def watch(step: Step, rows: int) -> None:
        if step.kind == "success":
            shares.append(step.share)
            assert rows == min(100 * len(shares), 250)

    pruning.prune(dry_run=False, watch=watch)
    assert shares == sorted(shares)
    assert (len(shares), shares[-1]) == (3, 1.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_a_bar_on_one_line_that_is_gone_at_the_end():
    terminal = Terminal()
    bar = ProgressBar(terminal)
    bar.show("success", 0.5, "100 rows")
    bar.show("success", 0.5, "100 rows")
    bar.clear()
    assert terminal.getvalue() == f"\r\x1b[Ksuccess    [{'#' * 12}{'.' * 12}]  50%  100 rows\r\x1b[K"


def test_a_file_sees_no_bar():
    stream = io.StringIO()
    bar = ProgressBar(stream)
    bar.show("success", 1, "")
    bar.clear()
    assert not stream.getvalue()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Retention()),
        ({"KEY_TTL": 60}, Retention(key_ttl=timedelta(minutes=1))),
        ({"RETENTION": {"success": 60}}, Retention(success=Keep(age=timedelta(minutes=1)))),
        (
            {"RETENTION": {"failed": {"age": DAY, "count": 500}, "canceled": None, "fires": None}},
            Retention(failed=Keep(age=DAY, count=500), canceled=Keep(), fires=None),
        ),
        (
            {"RETENTION": None},
            Retention(success=Keep(), failed=Keep(), canceled=Keep(), fires=None, workers=None),
        ),
    ],
)
def test_the_settings_become_what_is_kept(given: dict[str, Any], expected: Retention):
    with override_settings(HELISCHED=given):
        assert configured() == expected
    assert conf.parse_settings({}).retention.failed.age == 30 * DAY


@pytest.mark.parametrize(
    ("kept", "ident", "words"),
    [
        ({"workers": 299}, "helisched.E007", "between two of their reports"),
        ({"failed": 3600}, "helisched.W004", "what went wrong is forgotten first"),
        ({"success": None}, "helisched.W004", "for longer"),
        ({"fires": 3600}, "helisched.W005", "backfilled"),
    ],
)
def test_silly_ages_are_told(kept: dict[str, Any], ident: str, words: str):
    with override_settings(HELISCHED={"RETENTION": kept}):
        [message] = check_configuration()
    assert message.id == ident
    assert words in message.msg


@pytest.mark.parametrize("kept", [None, {"success": 60, "failed": None}, {"workers": 300}, {"failed": {"count": 9}}])
def test_other_ages_are_not(kept: Any):
    with override_settings(HELISCHED={"RETENTION": kept}):
        assert check_configuration() == []
