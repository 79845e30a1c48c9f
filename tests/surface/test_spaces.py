"""Whole spaces of crons: replaced through code, derived by providers, each for itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_helisched import cron_jobs, scheduler, wiring
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.driver.events import What
from django_helisched.exceptions import InvalidArguments, InvalidOption, UnknownFunction
from django_helisched.models import Cron, Fire
from django_helisched.testing.clock import ManualClock
from tests.app.jobs import note, seen
from tests.app.schedules import listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_helisched.crons.cron import CronDeclaration
    from django_helisched.crons.registry import CronJobs

pytestmark = pytest.mark.django_db

crons = scheduler.crons
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WITH_PROVIDER = {"CRONS": ["tests.app.schedules.of_tenants"]}


@pytest.fixture(autouse=True)
def clock() -> Iterator[ManualClock]:
    clock = ManualClock(NOON)
    with override_settings(HELISCHED=WITH_PROVIDER), wiring.replaced(clock=clock):
        yield clock
    listing.clear()
    seen.clear()


def entries(*names: str, every: timedelta = HOUR, **options: Any) -> CronJobs:
    """Declare one cron for each name."""
    declared = cron_jobs()
    for name in names:
        declared.interval(name, every, note, [name], **options)
    return declared


def rows(space: str, source: str = "api") -> dict[str, bool]:
    """Return the crons of a space, and whether each is active."""
    return {cron.name: cron.is_active for cron in wiring.cron_store().list(source=source, space=space)}


def of_provider(space: str) -> dict[str, bool]:
    return rows(space, "provider:tenants")


class TestPutSchedules:
    def test_a_space_becomes_what_is_put(self):
        plan = crons.put_schedules("1", entries("a", "b"))
        assert [row.name for row in plan.inserts] == ["a", "b"]
        assert set(Cron.objects.values_list("source", "space", "next_run_at")) == {("api", "1", NOON + HOUR)}
        assert crons.put_schedules("1", entries("b", "c")).archives == ("a",)
        assert rows("1") == {"a": False, "b": True, "c": True}
        assert crons.put_schedules("1", []).archives == ("b", "c")

    def test_other_spaces_and_other_sources_are_never_touched(self):
        crons.put_schedules("1", entries("a"))
        crons.put_schedules("11", entries("a"))
        crons.create("mine", note, ["x"], every=HOUR, space="1")
        crons.put_schedules("1", [])
        assert rows("1") == {"a": False}
        assert rows("11") == {"a": True}
        assert rows("1", "operator") == {"mine": True}

    def test_an_unchanged_cron_keeps_its_overdue_occurrence(self, clock):
        crons.put_schedules("1", entries("a"))
        clock.advance(1.5 * HOUR)
        assert crons.put_schedules("1", entries("a")).is_empty
        assert Cron.objects.get().next_run_at == NOON + HOUR

    def test_another_schedule_starts_from_now_and_counts_stay(self, clock):
        crons.put_schedules("1", entries("a"))
        clock.advance(2.5 * HOUR)
        Cron.objects.update(fired=7, last_fire_at=NOON)
        crons.put_schedules("1", entries("a", every=2 * HOUR))
        row = Cron.objects.get()
        assert (row.next_run_at, row.fired, row.missed) == (NOON + 4.5 * HOUR, 7, 2)
        assert row.last_fire_at == NOON
        assert Fire.objects.get().count == 2

    def test_a_pause_survives(self):
        crons.put_schedules("1", entries("a"))
        crons.pause("a", space="1")
        crons.put_schedules("1", entries("a", every=2 * HOUR))
        assert rows("1") == {"a": False}

    @pytest.mark.parametrize(
        ("bad", "error"),
        [
            ({"kwargs": {"nope": 1}}, InvalidArguments),
            ({"fn_path": "tests.app.jobs.gone"}, UnknownFunction),
            ({"space": "2"}, InvalidOption),
            ({"name": "a"}, InvalidOption),
        ],
    )
    def test_one_bad_entry_leaves_the_space_as_it_was(self, bad, error):
        good, other = entries("a", "b")
        with pytest.raises(error, match=bad.get("name", "b")):
            crons.put_schedules("1", [good, replace(other, **bad)])
        assert not Cron.objects.exists()

    @pytest.mark.parametrize("bad", [None, 5, ["text"], "text"])
    def test_what_is_no_list_of_declarations_is_refused(self, bad):
        with pytest.raises(InvalidOption, match="declaration"):
            crons.put_schedules("1", bad)

    def test_the_name_of_a_space_is_checked(self):
        with pytest.raises(InvalidOption, match="space"):
            crons.put_schedules(" 1", entries("a"))


class TestProviders:
    def test_each_space_gets_what_is_yielded_for_it(self):
        listing.update(acme=entries("a"), bolt=entries("a", "b"))
        crons.reconcile()
        assert of_provider("acme") == {"a": True}
        assert of_provider("bolt") == {"a": True, "b": True}
        assert rows("", "code") == {"heartbeat": True}
        assert crons.reconcile().notices == []

    def test_a_row_follows_the_data_and_one_space_can_be_asked_for(self):
        listing.update(acme=entries("a"), bolt=entries("a"))
        crons.reconcile()
        listing.update(acme=entries("b"), bolt=entries("b"))
        done = crons.reconcile(space="acme")
        assert of_provider("acme") == {"a": False, "b": True}
        assert of_provider("bolt") == {"a": True}
        assert set(done.plans) == {("provider:tenants", "acme")}

    def test_a_space_that_is_gone_is_archived_and_comes_back_as_the_same_rows(self):
        listing.update(acme=entries("a"), bolt=entries("a"))
        crons.reconcile()
        before = set(Cron.objects.values_list("id", flat=True))
        del listing["acme"]
        assert 'The cron "a" is no longer declared and was archived.' in crons.reconcile(space="acme").notices
        assert (of_provider("acme"), of_provider("bolt")) == ({"a": False}, {"a": True})
        listing["acme"] = entries("a")
        crons.reconcile()
        assert of_provider("acme") == {"a": True}
        assert set(Cron.objects.values_list("id", flat=True)) == before

    def test_a_space_without_crons_loses_the_ones_it_had(self):
        listing.update(acme=entries("a"))
        crons.reconcile()
        listing.update(acme=[])
        crons.reconcile()
        assert of_provider("acme") == {"a": False}

    def test_a_space_that_raises_keeps_its_rows_and_stops_no_other(self, caplog):
        listing.update(acme=entries("a"), bolt=entries("a"), core=entries("a"))
        crons.reconcile()

        def broken() -> Iterator[CronDeclaration]:
            yield from entries("b")
            raise LookupError("no such tenant")

        listing.update(acme=broken(), bolt=entries("b"))
        done = crons.reconcile()
        assert of_provider("acme") == {"a": True}
        assert of_provider("bolt") == {"a": False, "b": True}
        assert done.failed == {'provider:tenants in space "acme"': "LookupError: no such tenant"}
        assert "no such tenant" in caplog.text

    def test_a_bad_expression_harms_its_space_alone(self):
        def bad() -> Iterator[CronDeclaration]:
            declared = cron_jobs()
            declared.cron("b", "61 * * * *", note, ["x"])
            yield from declared

        listing.update(acme=bad(), bolt=entries("a"))
        done = crons.reconcile()
        assert of_provider("bolt") == {"a": True}
        [why] = done.failed.values()
        assert "InvalidSchedule" in why
        assert '"b"' in why

    def test_an_entry_whose_function_cannot_take_it_is_refused_alone(self):
        good, other = entries("a", "b")
        listing.update(acme=[good, other])
        crons.reconcile()
        listing.update(acme=[good, replace(other, kwargs={"nope": 1})])
        done = crons.reconcile()
        assert of_provider("acme") == {"a": True, "b": True}
        assert Cron.objects.get(name="b").kwargs == {}
        [notice] = done.notices
        assert notice.startswith('The cron "b" keeps its row as it is: ')
        assert "nope" in notice

    def test_a_provider_that_raises_archives_nothing_and_what_it_gave_before_stands(self):
        listing.update(acme=entries("a"), bolt=entries("a"))
        crons.reconcile()
        listing.clear()
        listing.update(acme=entries("b"), bolt=LookupError("gone"))
        done = crons.reconcile()
        assert of_provider("acme") == {"a": False, "b": True}
        assert of_provider("bolt") == {"a": True}
        assert done.failed == {"provider:tenants": "LookupError: gone"}
        assert rows("", "code") == {"heartbeat": True}

    @pytest.mark.parametrize("entry", [5, ["text"], None])
    def test_entries_of_another_kind_are_refused_with_their_space(self, entry):
        listing.update(acme=entry)
        assert list(crons.reconcile().failed) == ['provider:tenants in space "acme"']

    def test_two_entries_of_one_name_are_refused_with_their_space(self):
        listing.update(acme=[*entries("a"), *entries("a")], bolt=entries("a"))
        done = crons.reconcile()
        assert "declared twice" in done.failed['provider:tenants in space "acme"']
        assert (of_provider("acme"), of_provider("bolt")) == ({}, {"a": True})

    def test_without_any_list_nothing_is_known_and_nothing_is_archived(self):
        listing.update(acme=entries("a"))
        crons.reconcile()
        with override_settings(HELISCHED={}), pytest.raises(InvalidOption, match="cron_jobs"):
            crons.reconcile()
        assert of_provider("acme") == {"a": True}

    def test_a_provider_that_no_code_has_any_more_is_archived(self):
        listing.update(acme=entries("a"))
        crons.reconcile()
        with override_settings(HELISCHED={"CRONS": []}):
            crons.reconcile()
        assert of_provider("acme") == {"a": False}


@pytest.mark.parametrize(
    ("given", "words"),
    [(None, "returned None"), (["acme"], "yielded 'acme'"), ([(5, [])], "space"), ([("a", []), ("a", [])], "twice")],
)
def test_a_provider_that_yields_something_else_is_told_what_to_yield(given, words):
    declared = cron_jobs()
    declared.provider("tenants", lambda: given)
    [provider] = declared.providers()
    with pytest.raises(InvalidOption, match=words):
        list(provider.spaces())


def test_a_providers_name_and_function_are_checked():
    declared = cron_jobs()
    declared.provider("tenants", list)
    for name, fn in (("", list), ("x" * 72, list), ("tenants", list), ("other", 5)):
        with pytest.raises(InvalidOption):
            declared.provider(name, fn)  # type: ignore[arg-type]


class TestDrivers:
    @pytest.fixture
    def make(self) -> Callable[..., Driver]:
        """Give drivers that tell the test what happened."""

        def make(name: str, observe: Callable[[Any], None] = lambda _: None) -> Driver:
            config = DriverConfig(worker_id=name, lease=HOUR)
            stores = wiring.job_store(), wiring.cron_store()
            driver = Driver(*stores, config, seats=InlineSeats(4), observe=observe)
            driver.boot()
            return driver

        return make

    def test_providers_are_asked_at_the_boot_and_every_quarter_of_an_hour(self, make, clock):
        listing.update(acme=entries("a"))
        driver = make("w")
        assert of_provider("acme") == {"a": True}
        listing.update(acme=entries("b"))
        clock.advance(timedelta(minutes=14))
        driver.tick()
        assert of_provider("acme") == {"a": True}
        clock.advance(timedelta(minutes=1))
        driver.tick()
        assert of_provider("acme") == {"a": False, "b": True}

    def test_what_fails_is_told_and_the_driver_goes_on(self, make, clock):
        told: list[str] = []
        listing.update(acme=InvalidSchedule("no"))
        driver = make("w", lambda event: told.append(event.text) if event.what is What.DRIVER_NOTICE else None)
        assert told == ["The crons of provider:tenants were left as they are: InvalidSchedule: no."]
        clock.advance(HOUR)
        assert driver.tick().fired == 1

    def test_of_the_living_processes_the_newest_asks_its_provider(self, make, clock):
        older = make("older")
        clock.advance(timedelta(minutes=1))
        newer = make("newer")
        listing.update(acme=entries("a"))
        clock.advance(timedelta(minutes=16))
        older.tick()
        assert of_provider("acme") == {}
        newer.tick()
        assert of_provider("acme") == {"a": True}
        listing.update(acme=entries("b"))
        clock.advance(4 * HOUR)
        older.tick()
        assert of_provider("acme") == {"a": False, "b": True}

    def test_a_provider_that_a_living_process_has_is_not_archived_by_one_without_it(self, make, clock):
        listing.update(acme=entries("a"))
        make("with")
        with override_settings(HELISCHED={"CRONS": []}), wiring.replaced(clock=clock):
            make("without")
            assert of_provider("acme") == {"a": True}
            clock.advance(4 * HOUR)
            make("without, later")
        assert of_provider("acme") == {"a": False}


def test_a_cron_that_names_no_zone_takes_the_projects():
    setting = {**WITH_PROVIDER, "TZ": "Asia/Tokyo"}
    with override_settings(HELISCHED=setting), wiring.replaced(clock=ManualClock(NOON)):
        given = cron_jobs()
        given.cron("a", "0 9 * * *", note, ["x"])
        given.cron("b", "0 9 * * *", note, ["x"], tz="UTC")
        given.daily("c", hour_utc=9, minute_utc=0, fn=note, args=["x"])
        listing.update(acme=given)
        crons.put_schedules("1", given)
        crons.create("d", note, ["x"], expr="0 9 * * *")
        crons.reconcile()
    zones = Cron.objects.exclude(source="code").order_by("source", "name").values_list("source", "name", "tz")
    three = [("a", "Asia/Tokyo"), ("b", "UTC"), ("c", "UTC")]
    assert list(zones) == [
        *(("api", *each) for each in three),
        ("operator", "d", "Asia/Tokyo"),
        *(("provider:tenants", *each) for each in three),
    ]


def test_a_row_that_is_as_declared_is_not_locked(clock):
    listing.update({f"space {number}": entries("a") for number in range(20)})
    crons.reconcile()
    with CaptureQueriesContext(connection) as captured:
        crons.reconcile()
    assert len(captured) < 5
