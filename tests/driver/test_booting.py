"""What a driver does before its first pass, and every quarter of an hour after."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_helisched.driver.config import new_worker_id
from django_helisched.driver.events import What
from django_helisched.scheduler.declarations import find_declarations
from tests.driver.conftest import START

if TYPE_CHECKING:
    from django_helisched.driver import Driver

EVERY_SECOND = override_settings(HELISCHED={"CRONS": ["tests.app.schedules.every_second"]})
NOTHING = override_settings(HELISCHED={"CRONS": []})


def names(crons: Any) -> dict[str, bool]:
    """Return the stored crons and whether each is active."""
    return {cron.name: cron.is_active for cron in crons.list()}


def test_a_boot_stores_what_is_declared_and_tells_when_it_fires(driver: Driver, crons, events):
    with EVERY_SECOND:
        driver.boot()
    assert names(crons) == {"tick": True}
    (plan,) = events.of(What.CRON_PLANNED)
    assert plan.next_run_at == START + timedelta(seconds=1)


def test_a_second_boot_changes_nothing(driver: Driver, crons):
    with EVERY_SECOND:
        driver.boot()
        (before,) = crons.list()
        driver.boot()
    assert crons.list() == [before]


def test_what_is_no_longer_declared_is_archived(driver: Driver, crons, events):
    with EVERY_SECOND:
        driver.boot()
    with NOTHING:
        driver.boot()
    assert names(crons) == {"tick": False}
    assert any('"tick" is no longer declared' in event.text for event in events.of(What.DRIVER_NOTICE))


def test_what_another_living_process_declares_is_kept_until_it_is_gone(make_driver, crons, clock):
    older, newer = make_driver(), make_driver()
    with EVERY_SECOND:
        older.boot()
    with NOTHING:
        newer.boot()
        assert names(crons) == {"tick": True}
        clock.advance(timedelta(minutes=16))
        newer.tick()
    assert names(crons) == {"tick": False}


def test_a_declaration_is_reported_before_rows_are_compared(driver: Driver, store, cron_store):
    order: list[str] = []
    store.calls, cron_store.calls = order, order
    with EVERY_SECOND:
        driver.boot()
    assert "report_worker" in order[order.index("list") - 2 : order.index("list")]
    assert order.index("list") < order.index("reconcile")


def test_without_any_list_rows_stay_and_the_boot_says_so(driver: Driver, crons, events):
    with EVERY_SECOND:
        driver.boot()
    driver.boot()
    assert names(crons) == {"tick": True}
    assert any("no cron_jobs() list" in event.text for event in events.of(What.DRIVER_NOTICE))


def test_a_boot_with_crons_off_leaves_them_alone(make_driver, cron_store):
    with EVERY_SECOND:
        make_driver(fire_crons=False).boot()
    assert cron_store.calls == []


def test_no_list_is_not_an_empty_list():
    assert find_declarations() is None
    with NOTHING:
        declared = find_declarations()
    assert declared is not None
    assert declared.entries() == ()


@pytest.mark.parametrize("path", ["tests.app.nowhere.crons", "tests.app.jobs.note"])
def test_a_setting_that_leads_to_no_list_is_refused_with_its_path(path):
    with override_settings(HELISCHED={"CRONS": [path]}), pytest.raises(ImproperlyConfigured, match=path):
        find_declarations()


def test_two_starts_never_have_one_worker_id():
    assert new_worker_id("web") != new_worker_id("web")
    assert new_worker_id("web").startswith("web:")
    assert len(new_worker_id("x" * 500)) == 128
