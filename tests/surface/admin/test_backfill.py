"""Missed occurrences made up for in the admin: listed first, each once, by those who may run crons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from django_helisched.models import Cron, Fire, Job
from tests.surface.admin.pages import address, shown, told
from tests.surface.admin.rows import entries_of, new_cron, new_fire

pytestmark = pytest.mark.django_db

FIRST = datetime(2026, 7, 6, 7, 0, tzinfo=UTC)  # a Monday, 09:00 in Paris
SPAN = {"start": "2026-07-06 09:00", "end": "2026-07-08 09:00"}


def missed(count: int = 5, **given: Any) -> Cron:
    """Return a cron of weekdays with its week missed."""
    cron = new_cron(anchor=FIRST - timedelta(days=30), missed=count, **given)
    last = FIRST + timedelta(days=count - 1)
    new_fire(cron, FIRST, outcome="missed", count=count, last_due_at=last, job_id=None, decided_at=last)
    return cron


@pytest.mark.parametrize("source", ["code", "operator"])
def test_a_preview_lists_what_was_missed_and_a_post_enqueues_it(operator, source):
    cron = missed(source=source)
    url = address("cron_backfill", cron.pk)
    page = operator.post(url, {**SPAN, "_preview": "1"})
    assert page.context["count"] == 3
    assert page.context["due"][0] == "Mon 6 Jul 2026 09:00:00 CEST"
    assert not Job.objects.exists()
    assert entries_of(cron) == []
    response = operator.post(url, SPAN)
    assert response.url == address("cron_change", cron.pk)
    said = "Backfilled 3 from 2026-07-06 07:00:00 to 2026-07-08 07:00:00 UTC."
    assert told(response) == [said]
    assert entries_of(cron) == [said]
    assert list(Job.objects.values_list("trigger", flat=True)) == ["backfill"] * 3
    assert Fire.objects.filter(outcome="caught_up").count() == 3
    assert Cron.objects.get().missed == 2
    assert Cron.objects.get().next_run_at == cron.next_run_at


def test_a_post_sent_twice_enqueues_once(operator):
    cron = missed()
    operator.post(address("cron_backfill", cron.pk), SPAN)
    response = operator.post(address("cron_backfill", cron.pk), SPAN)
    assert told(response)[-1].startswith("Backfilled 0 ")
    assert Job.objects.count() == 3
    assert len(entries_of(cron)) == 1


def test_a_time_that_was_changed_after_its_preview_is_listed_first(operator):
    cron = missed()
    url = address("cron_backfill", cron.pk)
    seen = {"_seen": operator.post(url, {**SPAN, "_preview": "1"}).context["seen"]}
    page = operator.post(url, {**SPAN, **seen, "end": "2026-07-10 09:00"})
    assert page.context["count"] == 5
    assert not Job.objects.exists()
    operator.post(url, {**SPAN, **seen})
    assert Job.objects.count() == 3


def test_more_than_the_cap_is_left_for_another_time(operator):
    start = FIRST - timedelta(days=30)
    cron = new_cron(spec='{"kind":"interval","ms":60000}', tz="UTC", anchor=start, missed=1500)
    last = start + timedelta(minutes=1499)
    new_fire(cron, start, outcome="missed", count=1500, last_due_at=last, job_id=None, decided_at=last)
    span = {"start": "2026-01-01 00:00", "end": "2026-07-31 00:00", "_preview": "1"}
    page = operator.post(address("cron_backfill", cron.pk), span)
    assert (page.context["count"], len(page.context["due"]), page.context["unlisted"]) == (1000, 100, 900)
    assert page.context["remarks"] == ["500 more were missed in this time; backfill again for them."]


@pytest.mark.parametrize(
    ("changed", "field", "part"),
    [
        ({"start": ""}, "start", "required"),
        ({"start": "x"}, "start", "Write an instant"),
        ({"end": "2026-03-29 02:30"}, "end", "skip or repeat"),
        ({"end": "2026-07-01 00:00"}, "__all__", "must not be after end"),
    ],
)
def test_a_bad_time_is_said_at_its_field(operator, changed, field, part):
    cron = missed()
    response = operator.post(address("cron_backfill", cron.pk), {**SPAN, **changed})
    errors = response.context["form"].errors
    assert set(errors) == {field}
    assert part in " ".join(errors[field])
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"archived_at": FIRST}, "It was removed from the code."),
        ({"fn_path": "shop.jobs.removed"}, "This process does not know its function."),
    ],
)
def test_a_cron_that_cannot_run_is_not_backfilled(operator, given, part):
    cron = missed(**given)
    assert part in shown(operator, address("cron_backfill", cron.pk))
    assert operator.post(address("cron_backfill", cron.pk), SPAN).status_code == 200
    assert not Job.objects.exists()


def test_a_backfill_needs_its_permission_and_the_token(client_of):
    cron = missed()
    url = address("cron_backfill", cron.pk)
    for client in (client_of("view_cron", "pause_cron", "change_cron", "add_cron"), client_of("run_cron")):
        assert client.get(url).status_code == 403
        assert client.post(url, SPAN).status_code == 403
    assert Client().post(url, SPAN).status_code == 302
    assert client_of("view_cron", "run_cron", enforce_csrf_checks=True).post(url, SPAN).status_code == 403
    allowed = client_of("view_cron", "run_cron")
    assert allowed.get(url, SPAN).status_code == 200
    assert allowed.delete(url).status_code == 405
    assert not Job.objects.exists()
    allowed.post(url, SPAN)
    assert Job.objects.count() == 3
