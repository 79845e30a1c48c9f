"""scheduler.crons: what operators and programs do with crons while schedulers run."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_helisched import scheduler, wiring
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.driver import Driver, DriverConfig, InlineSeats, ThreadSeats
from django_helisched.exceptions import InvalidArguments, InvalidOption, StillRunning, UnknownFunction
from django_helisched.jobs.ids import uuid7
from django_helisched.models import Cron, Fire, Job
from django_helisched.stores.orm import OrmCronStore
from django_helisched.testing.clock import ManualClock
from tests.app.jobs import note, once, seen, send, show_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db

crons = scheduler.crons
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> Iterator[ManualClock]:
    clock = ManualClock(NOON)
    with wiring.replaced(clock=clock):
        yield clock
    seen.clear()


@pytest.fixture
def tick(clock: ManualClock) -> Callable[[], int]:
    """Give one pass of a scheduler, which returns how many jobs crons made."""

    def tick() -> int:
        config = DriverConfig(worker_id="w", lease=99 * HOUR)
        driver = Driver(
            wiring.job_store(), wiring.cron_store(), config, seats=InlineSeats(2000), observe=lambda _: None
        )
        return driver.tick().fired

    return tick


def row(name: str = "digest") -> Cron:
    return Cron.objects.get(name=name)


def due_times() -> list[datetime]:
    return list(Job.objects.order_by("id").values_list("due_at", flat=True))


class TestCreate:
    def test_a_cron_starts_with_its_first_occurrence_after_now(self, clock, tick):
        made = crons.create("digest", note, ["x"], expr="0 * * * *", by="ann")
        assert made == crons.get("digest")
        assert (made.source, made.next_run_at, made.declared_by) == ("operator", NOON + HOUR, "ann")
        assert tick() == 0
        clock.advance(HOUR)
        assert tick() == 1
        assert seen == ["x"]

    def test_every_option_is_stored(self, clock):
        crons.create(
            "digest",
            "tests.app.jobs.send",
            {"mark": "x"},
            every=90,
            source="api",
            space="acme",
            catch_up="skip",
            overlap="skip",
            max_failures=2,
            queue="vip",
            priority=-5,
            jitter=10,
            start=NOON + HOUR,
            end=NOON + 9 * HOUR,
            enabled=False,
        )
        made = row()
        assert (made.source, made.space, made.spec) == ("api", "acme", '{"kind":"interval","ms":90000}')
        assert (made.catch_up, made.overlap, made.max_failures) == ("skip", "skip", 2)
        assert (made.queue, made.priority, made.jitter) == ("vip", -5, timedelta(seconds=10))
        assert (made.start, made.end, made.enabled) == (NOON + HOUR, NOON + 9 * HOUR, False)
        assert (made.fn_path, made.args, made.kwargs) == ("tests.app.jobs.send", [], {"mark": "x"})

    @pytest.mark.parametrize(
        ("given", "error", "words"),
        [
            ({"expr": "61 * * * *"}, InvalidSchedule, ["digest", "61"]),
            ({"expr": "0 0 30 2 *"}, InvalidSchedule, ["digest", "never"]),
            ({"expr": "0 9 * * *", "tz": "Mars/Base"}, InvalidSchedule, ["digest", "Mars/Base"]),
            ({"expr": "0 9 * * *", "every": 60}, InvalidOption, ["digest", "not both"]),
            ({}, InvalidOption, ["digest", "expr="]),
            ({"every": -1}, InvalidOption, ["digest", "zero or more"]),
            ({"every": 60, "catch_up": "always"}, InvalidOption, ["digest", "catch_up"]),
            ({"every": 60, "start": NOON, "end": NOON}, InvalidOption, ["digest", "before end"]),
            ({"every": 60, "start": NOON.replace(tzinfo=None)}, InvalidOption, ["digest", "aware"]),
            ({"every": 60, "colour": "red"}, TypeError, ["digest", "colour"]),
            ({"every": 60, "source": "code"}, InvalidOption, ["operator"]),
            ({"every": 60, "args": {"nope": 1}}, InvalidArguments, ["digest", "nope", "mark"]),
            ({"every": 60, "args": {"mark": object()}}, InvalidOption, ["digest", "JSON"]),
            ({"every": 60, "fn": "tests.app.jobs.nope"}, UnknownFunction, ["digest", "tests.app.jobs.nope"]),
            ({"every": 60, "fn": "os.system;"}, InvalidOption, ["digest", "@mutation"]),
            ({"every": 60, "fn": once, "max_failures": 3}, InvalidOption, ["digest", "at_most_once"]),
        ],
    )
    def test_a_mistake_is_said_in_one_sentence_and_stores_nothing(self, clock, given, error, words):
        given = {"fn": note, "args": ["x"], **given}
        with pytest.raises(error) as raised:
            crons.create("digest", given.pop("fn"), given.pop("args"), **given)
        assert all(word in str(raised.value) for word in words), raised.value
        assert not Cron.objects.exists()

    @pytest.mark.parametrize("name", ["", " x", "x ", "x" * 151, "a\nb", "a\x00b", "\ud800", None, 5])
    def test_a_name_that_cannot_be_kept_is_refused(self, clock, name):
        with pytest.raises(InvalidOption, match="name of a cron"):
            crons.create(name, note, ["x"], every=60)

    def test_names_are_unique_in_a_space_and_compared_byte_by_byte(self, clock):
        for name, space in (("x", ""), ("X", ""), ("x", "acme"), ("\N{ROCKET}", "")):
            crons.create(name, note, ["x"], every=60, space=space)
        with pytest.raises(InvalidOption, match='a cron "x" already'):
            crons.create("x", note, ["x"], every=60)
        with pytest.raises(InvalidOption, match='in space "acme"'):
            crons.create("x", note, ["x"], every=60, space="acme")
        assert Cron.objects.count() == 4

    def test_the_database_itself_keeps_names_apart(self, clock):
        crons.create("x", note, ["x"], every=60)
        copy = row("x")
        copy.pk = uuid7()
        with pytest.raises(IntegrityError), transaction.atomic():
            copy.save(force_insert=True)

    def test_a_deleted_cron_comes_back_as_the_same_row_with_its_counts(self, clock, tick):
        made = crons.create("digest", note, ["x"], every=HOUR)
        clock.advance(HOUR)
        tick()
        crons.pause("digest", reason="no")
        assert crons.delete("digest")
        again = crons.create("digest", note, ["y"], every=MINUTE)
        assert (again.id, again.fired, again.paused_at) == (made.id, 1, None)
        assert (again.next_run_at, again.args) == (NOON + HOUR + MINUTE, ["y"])


class TestEdit:
    def test_a_new_schedule_starts_from_now_and_what_was_overdue_is_missed(self, clock, tick):
        crons.create("digest", note, ["x"], expr="0 * * * *")
        clock.advance(3 * HOUR + MINUTE)
        assert crons.edit("digest", expr="30 * * * *")
        made = row()
        assert (made.next_run_at, made.missed, made.fired) == (NOON + 3.5 * HOUR, 3, 0)
        fire = Fire.objects.get(cron=made)
        assert (fire.outcome, fire.count, fire.due_at, fire.last_due_at) == ("missed", 3, NOON + HOUR, NOON + 3 * HOUR)
        assert "edited" in fire.reason
        assert tick() == 0

    def test_other_edits_keep_an_overdue_occurrence(self, clock, tick):
        crons.create("digest", note, ["x"], expr="0 * * * *")
        clock.advance(HOUR + MINUTE)
        assert crons.edit("digest", args=["y"], priority=7)
        assert tick() == 1
        assert seen == ["y"]
        assert Job.objects.get().due_at == NOON + HOUR

    def test_an_edit_from_one_zone_to_another_never_fires_a_past_instant(self, clock):
        clock.advance(-2 * HOUR)
        crons.create("digest", note, ["x"], expr="0 9 * * *", tz="Europe/London")
        assert row().next_run_at == datetime(2026, 6, 2, 8, tzinfo=UTC)
        assert crons.edit("digest", tz="Asia/Tokyo")
        assert row().next_run_at == datetime(2026, 6, 2, 0, tzinfo=UTC)

    def test_an_edit_that_changes_nothing_writes_nothing(self, clock):
        crons.create("digest", note, {"mark": 1}, expr="0 9 * * *", tz="Europe/Paris")
        version = row().version
        assert not crons.edit("digest", expr=" 0  9 * * * ", args={"mark": 1}, catch_up="fire_once")
        assert not crons.edit("digest")
        assert row().version == version

    def test_an_edit_is_checked_as_a_whole(self, clock):
        crons.create("digest", note, {"mark": 1}, every=60, start=NOON)
        version = row().version
        for changes, error in (
            ({"end": NOON - HOUR}, InvalidOption),
            ({"fn": show_context}, InvalidArguments),
            ({"args": [1, 2]}, InvalidArguments),
            ({"expr": "x"}, InvalidSchedule),
            ({"every": 60, "expr": "0 9 * * *"}, InvalidOption),
            ({"tz": "Nowhere"}, InvalidSchedule),
            ({"version": 9}, TypeError),
            ({"paused_at": NOON}, TypeError),
        ):
            with pytest.raises(error, match="digest"):
                crons.edit("digest", **changes)
        assert row().version == version

    def test_a_function_and_its_arguments_change_together(self, clock):
        crons.create("digest", note, {"mark": 1}, every=60)
        assert crons.edit("digest", fn=show_context, args=None)
        made = row()
        assert (made.fn_path, made.args, made.kwargs) == ("tests.app.jobs.show_context", [], {})

    def test_switching_off_and_on_counts_no_time_in_between(self, clock, tick):
        crons.create("digest", note, ["x"], expr="0 17 * * *")
        assert crons.edit("digest", enabled=False)
        clock.advance(240 * HOUR + 5.5 * HOUR)
        assert crons.edit("digest", enabled=True)
        assert tick() == 0
        assert (row().missed, row().next_run_at) == (0, datetime(2026, 6, 12, 17, tzinfo=UTC))

    def test_of_two_that_edit_at_once_the_second_starts_from_what_the_first_wrote(self, clock, monkeypatch):
        made = crons.create("digest", note, ["x"], every=60)
        get = OrmCronStore.get
        others = iter([{"priority": 3}])

        def get_and_be_overtaken(store: OrmCronStore, cron_id: Any) -> Any:
            found: Any = get(store, cron_id)
            for changes in others:
                Cron.objects.filter(pk=cron_id).update(**changes, version=found.version + 1)
            return found

        monkeypatch.setattr(OrmCronStore, "get", get_and_be_overtaken)
        assert crons.edit(made.id, queue="vip")
        assert (row().priority, row().queue, row().version) == (3, "vip", 3)

    @pytest.mark.parametrize("source", ["code", "provider:tenants"])
    def test_what_is_declared_elsewhere_is_changed_there(self, clock, source):
        made = crons.create("digest", note, ["x"], every=60)
        Cron.objects.update(source=source)
        with pytest.raises(InvalidOption, match="declared"):
            crons.edit(made.id, priority=1)
        with pytest.raises(InvalidOption, match="declared"):
            crons.delete(made.id)
        assert crons.pause(made.id)

    def test_a_deleted_cron_is_created_and_not_edited(self, clock):
        crons.create("digest", note, ["x"], every=60)
        crons.delete("digest")
        with pytest.raises(InvalidOption, match="deleted"):
            crons.edit("digest", priority=1)


class TestDelete:
    def test_a_deleted_cron_fires_no_more_and_its_jobs_go_on(self, clock, tick):
        made = crons.create("digest", note, ["x"], every=HOUR)
        job = crons.run_now("digest")
        assert crons.delete("digest")
        assert not crons.delete("digest")
        clock.advance(3 * HOUR)
        assert tick() == 0
        assert seen == ["x"]
        job.refresh_from_db()
        assert (job.state, job.name, job.cron_id) == ("success", "digest", made.id)
        assert (row().archived_at, row().missed) == (NOON, 0)
        assert crons.get(made.id).next_run_at is None

    def test_what_was_overdue_is_missed(self, clock):
        crons.create("digest", note, ["x"], every=HOUR)
        clock.advance(2 * HOUR)
        crons.delete("digest")
        assert row().missed == 2
        assert Fire.objects.get().count == 2


class TestPause:
    def test_overdue_occurrences_count_as_missed_when_pausing_and_paused_time_does_not(self, clock, tick):
        crons.create("digest", note, ["x"], expr="0 * * * *")
        clock.advance(2 * HOUR + MINUTE)
        assert crons.pause("digest", by="ann", reason="holidays")
        assert not crons.pause("digest")
        assert Fire.objects.get().reason == "dropped when the cron was paused"
        clock.advance(100 * HOUR)
        assert crons.resume("digest")
        assert not crons.resume("digest")
        assert tick() == 0
        assert (row().missed, row().next_run_at) == (2, NOON + 103 * HOUR)


class TestBackfill:
    @pytest.fixture
    def behind(self, clock, tick) -> Cron:
        """Give a cron that missed the hours from one to nine o'clock."""
        crons.create("digest", note, ["x"], expr="0 * * * *")
        clock.advance(10 * HOUR)
        assert tick() == 1
        assert row().missed == 9
        Job.objects.all().delete()
        seen.clear()
        return row()

    def test_a_preview_writes_nothing(self, behind):
        shown = crons.backfill("digest", NOON + 2 * HOUR, NOON + 4 * HOUR, preview=True)
        assert shown.due == (NOON + 2 * HOUR, NOON + 3 * HOUR, NOON + 4 * HOUR)
        assert (shown.job_ids, shown.left, shown.unknown) == ((), 0, 0)
        assert row().version == behind.version
        assert not Job.objects.exists()

    def test_a_job_is_made_for_each_missed_occurrence_and_knows_it(self, behind, clock, tick):
        crons.edit("digest", fn=show_context, args=None)
        done = crons.backfill("digest", NOON + 2 * HOUR, NOON + 4 * HOUR)
        assert due_times() == list(done.due)
        assert list(Job.objects.order_by("id").values_list("id", flat=True)) == list(done.job_ids)
        assert set(Job.objects.values_list("trigger", "next_run_at")) == {("backfill", clock.now())}
        tick()
        assert [mark[0] for mark in seen] == list(done.due)
        assert (row().fired, row().missed) == (behind.fired + 3, 6)
        assert row().next_run_at == behind.next_run_at

    def test_nothing_is_made_up_for_twice(self, behind):
        assert len(crons.backfill("digest", NOON, NOON + 99 * HOUR).due) == 9
        assert crons.backfill("digest", NOON, NOON + 99 * HOUR).due == ()
        assert len(due_times()) == len(set(due_times())) == 9

    def test_what_fired_and_what_never_fell_due_is_not_taken(self, behind, clock):
        assert crons.backfill("digest", NOON + 10 * HOUR, NOON + 99 * HOUR).due == ()
        assert crons.backfill("digest", NOON - 99 * HOUR, NOON).due == ()

    def test_at_most_a_thousand_at_once(self, clock, tick):
        crons.create("fast", note, ["x"], every=1, catch_up="skip")
        clock.advance(timedelta(seconds=3000))
        tick()
        Job.objects.all().delete()
        done = crons.backfill("fast", NOON, NOON + HOUR)
        assert (len(done.due), len(done.job_ids), done.left) == (1000, 1000, 1999)
        assert Job.objects.count() == 1000

    def test_two_that_make_up_for_the_same_time_make_each_job_once(self, behind, monkeypatch):
        backfill = OrmCronStore.backfill
        rivals = iter([lambda: crons.backfill("digest", NOON, NOON + 5 * HOUR)])

        def backfill_and_be_overtaken(store: OrmCronStore, *given: Any) -> bool:
            for rival in rivals:
                rival()
            return backfill(store, *given)

        monkeypatch.setattr(OrmCronStore, "backfill", backfill_and_be_overtaken)
        done = crons.backfill("digest", NOON, NOON + 9 * HOUR)
        assert done.due == tuple(NOON + hour * HOUR for hour in range(6, 10))
        assert sorted(due_times()) == [NOON + hour * HOUR for hour in range(1, 10)]

    def test_what_cannot_be_made_up_for_is_refused_in_a_sentence(self, behind):
        with pytest.raises(InvalidOption, match="no time zone"):
            crons.backfill("digest", NOON.replace(tzinfo=None), NOON)
        with pytest.raises(InvalidOption, match="after end"):
            crons.backfill("digest", NOON + HOUR, NOON)
        Cron.objects.update(fn_path="tests.app.jobs.gone")
        with pytest.raises(UnknownFunction, match="gone"):
            crons.backfill("digest", NOON, NOON + 9 * HOUR)
        crons.delete("digest")
        with pytest.raises(InvalidOption, match="archived"):
            crons.backfill("digest", NOON, NOON + 9 * HOUR)

    def test_jobs_of_a_cron_that_may_not_overlap_run_one_after_the_other(self, behind, tick):
        crons.edit("digest", overlap="skip")
        crons.backfill("digest", NOON, NOON + 3 * HOUR)
        assert set(Job.objects.values_list("hold", flat=True)) == {"overlap"}
        for finished in (1, 2, 3):
            tick()
            assert Job.objects.filter(state="success").count() == finished


def test_a_change_rolls_back_with_the_callers_transaction(clock):
    class Changed(Exception):
        pass

    with suppress(Changed), transaction.atomic():
        crons.create("digest", note, ["x"], every=60)
        raise Changed
    assert not Cron.objects.exists()


def test_a_cron_that_needs_no_arguments_of_its_own_takes_the_functions_choices(clock, tick):
    crons.create("digest", send, ["x"], every=HOUR)
    clock.advance(HOUR)
    tick()
    job = Job.objects.get()
    assert (job.queue, job.priority, job.max_failures) == ("mail", 7, 9)


def test_a_cron_of_every_second_that_was_down_for_a_year_is_caught_up_in_one_tick(clock, tick):
    crons.create("fast", note, ["x"], every=1, catch_up="fire_all")
    seconds = 365 * 24 * 3600
    clock.advance(seconds + 0.25)
    with CaptureQueriesContext(connection) as captured:
        store = OrmCronStore("default", clock)
        driver = Driver(wiring.job_store(), store, DriverConfig(worker_id="w"), seats=ThreadSeats(0))
        assert driver.tick().fired == 1000
    assert len(captured) < 40
    fast = row("fast")
    assert (fast.fired, fast.missed) == (1000, seconds - 1000)
    assert fast.next_run_at == NOON + timedelta(seconds=seconds + 1)
    assert due_times() == [NOON + timedelta(seconds=seconds - 999 + number) for number in range(1000)]
    run = Fire.objects.get(cron=fast, outcome="missed")
    assert (run.due_at, run.count) == (NOON + timedelta(seconds=1), seconds - 1000)


# MySQL's ANALYZE commits: a test's own transaction would leave the rows to its successors.
@pytest.mark.django_db(transaction=True)
def test_ten_thousand_idle_crons_cost_one_indexed_query(clock, tick):
    made = crons.create("digest", note, ["x"], every=HOUR)
    template = row()
    Cron.objects.bulk_create(
        [
            Cron(
                source="api",
                name=f"cron {number}",
                spec=template.spec,
                anchor=template.anchor,
                fn_path=template.fn_path,
                next_run_at=NOON + HOUR,
                counted_since=NOON,
                declared_at=NOON,
            )
            for number in range(10_000)
        ],
        batch_size=1000,
    )
    analyze()
    store = OrmCronStore("default", clock)
    with CaptureQueriesContext(connection) as captured:
        assert store.next_due_at() == made.next_run_at
    assert len(captured) == 1
    assert "helisched_cron_due" in explained(captured.captured_queries[0]["sql"])
    tick()
    with CaptureQueriesContext(connection) as captured:
        tick()
    about_crons = [query["sql"] for query in captured.captured_queries if "helisched_cron" in query["sql"]]
    assert len(about_crons) == 1


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE TABLE helisched_cron" if connection.vendor == "mysql" else "ANALYZE helisched_cron")
        if connection.vendor == "mysql":
            cursor.fetchall()


def explained(sql: str) -> str:
    prefix = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{prefix} {sql}")
        return str(cursor.fetchall())


def test_a_cron_that_skips_overlap_is_not_run_twice_by_a_second_click():
    crons.create("digest", note, ["x"], every=HOUR, overlap="skip")
    first = crons.run_now("digest")
    with pytest.raises(StillRunning, match='"digest" is still pending or in progress'):
        crons.run_now("digest")
    scheduler.cancel(first)
    assert crons.run_now("digest").pk != first.pk
