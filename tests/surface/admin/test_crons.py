"""Crons: the list, the page and the verbs; a broken row is flagged and harms no other."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched.admin.cron_page import MAX_FIRES
from django_helisched.models import Fire
from tests.surface.admin.pages import address, shown
from tests.surface.admin.rows import new_cron, new_fire, new_job, now

pytestmark = pytest.mark.django_db


def listed(client, **data) -> set[str]:
    response = client.get(address("cron_changelist"), data)
    assert response.status_code == 200
    return {cron.name for cron in response.context["cl"].result_list}


def test_the_list_says_when_and_what(operator):
    new_cron(
        "digest",
        next_run_at=datetime(2999, 12, 1, 8, 0, tzinfo=UTC),
        last_fire_at=now() - timedelta(minutes=5),
        fired=41,
        missed=2,
    )
    text = shown(operator, address("cron_changelist"))
    for part in (
        "digest",
        "note · code",
        "at 09:00, on Monday to Friday",
        "0 9 * * mon-fri",
        "Europe/Paris",
        "1 Dec 2999 09:00 CET",
        "1 Dec 2999 08:00 UTC",
        "5 min ago",
        "41 fired",
        "2 missed",
        "active",
    ):
        assert part in text, part


def test_an_overdue_cron_says_how_late_it_is(operator):
    new_cron(next_run_at=now() - timedelta(minutes=3))
    assert "late by 3 min" in shown(operator, address("cron_changelist"))


def test_status_narrows_the_list_and_hides_archived_ones_at_first(operator):
    moment = now()
    new_cron("active")
    new_cron("paused", paused_at=moment)
    new_cron("disabled", enabled=False)
    new_cron("faulty", last_error="No such zone.")
    new_cron("archived", archived_at=moment)
    assert listed(operator) == {"active", "paused", "disabled", "faulty"}
    assert listed(operator, status="active") == {"active", "faulty"}
    assert listed(operator, status="paused") == {"paused"}
    assert listed(operator, status="errors") == {"faulty"}
    assert listed(operator, status="archived") == {"archived"}
    assert listed(operator, status="all") == {"active", "paused", "disabled", "faulty", "archived"}
    assert listed(operator, status="\x00bogus") == listed(operator)
    assert listed(operator, q="pau") == {"paused"}


def test_everything_that_keeps_a_cron_from_firing_is_flagged(operator):
    moment = now()
    new_cron("a", paused_at=moment, paused_by="ada", pause_reason="SMTP is down")
    new_cron("b", enabled=False)
    new_cron("c", archived_at=moment)
    new_cron("d", fn_path="shop.jobs.removed")
    new_cron("e", last_error="Boom.")
    new_cron("f", next_run_at=None)
    text = shown(operator, address("cron_changelist"), {"status": "all"})
    for part in (
        "paused by ada: SMTP is down",
        "disabled It is declared with enabled=False.",
        "archived It was removed from the code.",
        "unknown function This process does not know the function shop.jobs.removed.",
        "error Boom.",
        "over No occurrence is left.",
    ):
        assert part in text, part


BROKEN: dict[str, dict[str, Any]] = {
    "empty": {"spec": ""},
    "garbage": {"spec": "garbage"},
    "no cron": {"spec": '{"kind":"cron","expr":"garbage"}'},
    "never": {"spec": '{"kind":"cron","expr":"0 0 31 2 *"}'},
    "reboot": {"spec": '{"kind":"cron","expr":"@reboot"}'},
    "long": {"spec": '{"kind":"cron","expr":"' + "1," * 5000 + '"}'},
    "huge interval": {"spec": '{"kind":"interval","ms":' + "9" * 400 + "}"},
    "list": {"spec": "[1,2]"},
    "deep": {"spec": "[" * 5000},
    "zone": {"tz": "Mars/Olympus"},
    "empty zone": {"tz": ""},
    "path zone": {"tz": "../../etc/passwd"},
    "year 1000": {"next_run_at": datetime(1000, 1, 1, tzinfo=UTC), "tz": "America/New_York"},
    "year 9999": {"next_run_at": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "tz": "Pacific/Kiritimati"},
    "odd args": {"args": {"not": "a list"}, "kwargs": ["not a dict"]},
    "function": {"fn_path": ""},
    "words": {"catch_up": "bogus", "overlap": "bogus"},
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_cron_breaks_no_page(operator, kind):
    new_cron("good")
    broken = new_cron("broken", **BROKEN[kind])
    assert listed(operator) == {"good", "broken"}
    for view in ("change", "history", "pause", "resume", "run_now"):
        assert operator.get(address(f"cron_{view}", broken.pk)).status_code == 200


@pytest.mark.parametrize("kind", ["empty", "garbage", "never", "reboot", "long", "deep", "zone", "path zone"])
def test_a_broken_cron_is_flagged_with_the_reason(operator, kind):
    broken = new_cron("x", **BROKEN[kind])
    assert "broken" in shown(operator, address("cron_changelist"))
    assert 'class="hs-trouble hs-bad"' in operator.get(address("cron_change", broken.pk)).content.decode()


def test_the_page_previews_what_the_scheduler_would_fire(operator):
    cron = new_cron("nightly", spec='{"kind":"cron","expr":"30 2 * * *"}', tz="UTC")
    text = shown(operator, address("cron_change", cron.pk))
    assert text.count("02:30:00 UTC") == 10
    assert "at 02:30" in text


def test_the_page_previews_an_interval_from_its_anchor(operator):
    moment = now()
    cron = new_cron("poll", spec='{"kind":"interval","ms":3600000}', anchor=moment)
    first = moment + timedelta(hours=1)
    text = shown(operator, address("cron_change", cron.pk))
    assert "every 1 h" in text
    assert f"{first:%Y-%m-%d %H:%M:%S}" in text


def test_what_a_schedule_may_be_mistaken_for_is_said(operator):
    cron = new_cron(spec='{"kind":"cron","expr":"0 0 1 * mon"}')
    assert "Day of month and weekday are both restricted" in shown(operator, address("cron_change", cron.pk))


def test_the_newest_fires_are_listed_with_their_jobs(operator):
    cron = new_cron(tz="UTC")
    moment = now().replace(microsecond=0)
    for number in range(MAX_FIRES + 3):
        new_fire(cron, moment - timedelta(days=number + 1))
    job = new_job(cron=cron)
    new_fire(cron, moment, outcome="caught_up", job_id=job.pk, lateness=timedelta(seconds=4))
    new_fire(
        cron,
        moment - timedelta(hours=2),
        outcome="missed",
        count=7,
        last_due_at=moment - timedelta(hours=1),
        job_id=None,
        reason="the scheduler was down",
    )
    page = operator.get(address("cron_change", cron.pk)).content.decode()
    assert page.count('class="hs-flag hs-fire-') == MAX_FIRES
    assert f'<a href="{address("job_change", job.pk)}">…{str(job.pk)[-12:]}</a>' in page
    for part in ("caught up", "4 s", "the scheduler was down", "<td>7</td>"):
        assert part in page


def test_a_zone_and_an_expression_are_not_broken_over_lines(operator):
    new_cron(tz="America/St_Johns", spec='{"expr":"0 12 * * *","kind":"cron"}')
    body = operator.get(address("cron_changelist")).content.decode()
    assert '<code>0 12 * * *</code> <span class="hs-whole">America/St_Johns</span>' in body


@pytest.mark.parametrize(("tz", "columns"), [("UTC", ["UTC"]), ("Europe/Paris", ["Europe/Paris", "UTC"])])
def test_the_fires_to_come_have_one_column_for_each_zone(operator, tz, columns):
    body = operator.get(address("cron_change", new_cron(tz=tz).pk)).content.decode()
    table = body.partition("Next fires")[2].partition("</table>")[0]
    assert re.findall(r'<th scope="col">(.*?)</th>', table) == [*columns, "From now", "Note"]
    assert table.partition("<tbody>")[2].partition("</tr>")[0].count("<td>") == len(columns) + 2


def test_the_queries_are_as_many_for_many_crons_and_fires(operator):
    def queries(url: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            operator.get(url)
        return len(captured)

    cron = new_cron("first")
    new_fire(cron, now())
    urls = (address("cron_changelist"), address("cron_change", cron.pk))
    for url in urls:
        operator.get(url)
    few = [queries(url) for url in urls]
    for number in range(30):
        new_cron(f"cron {number}")
        new_fire(cron, now() - timedelta(days=number + 1), job_id=uuid4())
    assert [queries(url) for url in urls] == few


def test_arguments_need_their_permission_and_hide_secrets(client_of):
    cron = new_cron(kwargs={"kind": "short-one", "password": "s3cr3t"})
    lacking = shown(client_of("view_cron"), address("cron_change", cron.pk))
    allowed = shown(client_of("view_cron", "view_job_args"), address("cron_change", cron.pk))
    assert "short-one" not in lacking
    assert "You may not see arguments" in lacking
    assert "short-one" in allowed
    assert "s3cr3t" not in lacking + allowed


def test_fires_of_another_cron_are_not_shown(operator):
    cron, other = new_cron("a"), new_cron("b")
    new_fire(other, now(), reason="of the other")
    assert "of the other" not in shown(operator, address("cron_change", cron.pk))
    assert Fire.objects.count() == 1
