"""Pause, resume and run now: what changes, what is logged, what is said."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection

from django_helisched.models import Cron, Job
from tests.surface.admin.pages import act, address, told
from tests.surface.admin.rows import new_cron, now

pytestmark = pytest.mark.django_db


def entries() -> list[str]:
    return [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]


def test_pause_keeps_the_reason_and_who(operator):
    cron = new_cron()
    response = operator.post(address("cron_pause", cron.pk), {"reason": "SMTP is down"})
    assert response.url == address("cron_change", cron.pk)
    assert told(response) == ["Paused 1."]
    row = Cron.objects.get()
    assert (row.paused_by, row.pause_reason) == ("ada", "SMTP is down")
    assert row.paused_at is not None
    assert entries() == ["Paused. Reason: SMTP is down"]
    response = operator.post(address("cron_pause", cron.pk))
    assert told(response)[-1] == "Paused 0. Left alone 1: 1 already paused."
    assert Cron.objects.get().pause_reason == "SMTP is down"


def test_resume_lets_it_fire_again(operator):
    cron = new_cron(paused_at=now(), next_run_at=None)
    response = operator.post(address("cron_resume", cron.pk))
    assert told(response) == ["Resumed 1."]
    row = Cron.objects.get()
    assert row.paused_at is None
    assert row.next_run_at is not None
    assert entries() == ["Resumed."]
    assert told(operator.post(address("cron_resume", cron.pk)))[-1] == "Resumed 0. Left alone 1: 1 not paused."


def test_run_now_enqueues_one_job_and_leaves_the_schedule(operator):
    cron = new_cron()
    response = operator.post(address("cron_run_now", cron.pk))
    job = Job.objects.get()
    assert response.url == address("cron_change", cron.pk)
    assert told(response) == ["Enqueued 1, due now."]
    assert (job.cron_id, job.trigger, job.state) == (cron.pk, "manual", "pending")
    assert Cron.objects.get().next_run_at == cron.next_run_at
    assert entries() == [f"Run now, as job {job.pk}."]


def test_reading_run_now_again_enqueues_nothing(operator):
    cron = new_cron()
    operator.post(address("cron_run_now", cron.pk), follow=True)
    operator.get(address("cron_run_now", cron.pk))
    operator.get(address("cron_change", cron.pk))
    assert Job.objects.count() == 1


def test_run_now_of_an_unknown_function_is_refused_with_the_reason(operator):
    good, unknown = new_cron("good"), new_cron("unknown", fn_path="shop.jobs.removed")
    (said,) = told(act(operator, "cron", "run_selected", [good.pk, unknown.pk]))
    assert said.startswith('Enqueued 1, due now. Refused 1: No registered function has the path "shop.jobs.removed".')
    assert Job.objects.get().cron_id == good.pk
    page = operator.get(address("cron_change", unknown.pk)).content.decode()
    assert address("cron_run_now", unknown.pk) not in page
    assert "This process does not know its function." in page


def test_the_list_pauses_and_resumes_the_ticked_ones_with_one_entry_each(operator):
    first, second = new_cron("a"), new_cron("b", paused_at=now())
    (said,) = told(act(operator, "cron", "pause_selected", [first.pk, second.pk], reason="deploy"))
    assert said == "Paused 1. Left alone 1: 1 already paused."
    assert Cron.objects.get(name="a").pause_reason == "deploy"
    response = act(operator, "cron", "resume_selected", [first.pk, second.pk], query="?status=paused")
    assert response.url.endswith("?status=paused")
    assert told(response)[-1] == "Resumed 2."
    assert entries() == ["Paused. Reason: deploy", "Resumed.", "Resumed."]


@pytest.mark.parametrize("reason", ["\x00", "x" * 301])
def test_a_reason_that_cannot_be_stored_changes_nothing(operator, reason):
    cron = new_cron()
    page = operator.post(address("cron_pause", cron.pk), {"reason": reason})
    assert page.status_code == 200
    assert "errorlist" in page.content.decode()
    act(operator, "cron", "pause_selected", [cron.pk], reason=reason)
    assert Cron.objects.get().paused_at is None
    assert entries() == []


def test_a_cron_whose_row_cannot_be_read_is_counted_and_harms_no_other(operator, caplog):
    good, broken = new_cron("good"), new_cron("broken")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE helisched_cron SET args = '{not json' WHERE name = 'broken'")
    (said,) = told(act(operator, "cron", "pause_selected", [good.pk, broken.pk]))
    assert said == "Paused 1. Failed 1: an unexpected error, written to the web server's log."
    assert Cron.objects.filter(paused_at__isnull=False).values_list("name", flat=True).get() == "good"
    assert str(broken.pk) in caplog.text
