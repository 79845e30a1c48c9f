"""Edits and deletions of crons in the admin: what changes, what stays, and who may."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.test import Client, override_settings

from django_helisched.models import Cron
from django_helisched.scheduler import crons
from tests.surface.admin.forms import GOOD, created, due, edited, errors_of
from tests.surface.admin.functions import log_in
from tests.surface.admin.pages import address, shown, told
from tests.surface.admin.rows import entries_of, new_cron, now

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("start", ["", "2999-01-01 00:00"])
def test_the_preview_of_an_edit_is_what_saving_gives(operator, start):
    row = created(expr=None, every=7200, start=now() - timedelta(minutes=50))
    given = {"every": "3600", "start": start}
    (fire, *_) = edited(operator, row, **given, _preview="1").context["next_fires"]
    assert Cron.objects.get().spec == row.spec
    edited(operator, row, **given)
    assert abs(datetime.fromisoformat(f"{fire['utc']}+00:00") - due()) < timedelta(seconds=30)


def test_an_edit_changes_what_was_changed_and_logs_it(operator):
    row = created(start=datetime(2026, 1, 1, 0, 0, 0, 123000, tzinfo=UTC), queue="mail")
    response = edited(operator, row, priority="9", args='{"mark": 2}')
    after = Cron.objects.get()
    assert response.url == address("cron_change", after.pk)
    assert (after.priority, after.kwargs, after.queue) == (9, {"mark": 2}, "mail")
    assert (after.start, after.next_run_at, after.anchor) == (row.start, row.next_run_at, row.anchor)
    assert entries_of(after) == ["Edited: arguments, priority."]
    assert LogEntry.objects.get().action_flag == CHANGE


def test_a_new_schedule_starts_after_now_and_fires_nothing_past(operator):
    row = created()
    Cron.objects.update(next_run_at=now() - timedelta(minutes=1))
    edited(operator, row, expr="*/5 * * * *")
    after = Cron.objects.get()
    assert now() < due() <= now() + timedelta(minutes=5)
    assert after.fired == 0


def test_an_edit_of_nothing_writes_nothing(operator):
    row = created(jitter=1.5)
    response = edited(operator, row)
    assert told(response) == ["Nothing was changed."]
    assert Cron.objects.get().version == row.version
    assert not LogEntry.objects.exists()


def test_an_edit_sent_twice_is_one_edit(operator):
    row = created()
    url = address("cron_edit", row.id)
    data = {field.name: field.value() for field in operator.get(url).context["form"] if field.value() is not None}
    for _ in range(2):
        assert operator.post(url, {**data, "priority": "5"}).status_code == 302
    assert LogEntry.objects.count() == 1


def test_an_edit_of_what_another_has_edited_meanwhile_is_refused(operator):
    row = created()
    url = address("cron_edit", row.id)
    data = {field.name: field.value() for field in operator.get(url).context["form"] if field.value() is not None}
    crons.edit(row, priority=7)
    (said,) = errors_of(operator.post(url, {**data, "queue": "other"}))["__all__"]
    assert said.startswith("The cron was changed meanwhile")
    assert Cron.objects.get().priority == 7
    Cron.objects.update(priority=None, fired=5, version=99)
    assert operator.post(url, {**data, "queue": "other"}).status_code == 302


def test_the_name_and_space_of_a_cron_stay(operator):
    row = created()
    edited(operator, row, name="other", space="elsewhere", priority="1")
    assert Cron.objects.values_list("name", "space", "priority").get() == ("digest", "", 1)


def test_a_schedule_that_cannot_be_read_is_mended_by_the_form(operator):
    row = new_cron(source="operator", spec="broken", next_run_at=None, last_error="x")
    assert errors_of(edited(operator, row)) == {"expr": ["Give a cron expression or an interval, one of the two."]}
    edited(operator, row, expr="0 9 * * *")
    after = Cron.objects.get()
    assert due() > now()
    assert after.last_error == ""


def test_a_secret_is_not_shown_and_stays(operator):
    row = crons.create("login", log_in, {"user": "ada", "password": "hunter2"}, every=60)
    assert "hunter2" not in operator.get(address("cron_edit", row.id)).content.decode()
    edited(operator, row, args='{"user": "bob", "password": "•••"}')
    assert Cron.objects.get().kwargs == {"user": "bob", "password": "hunter2"}
    crons.edit(row, args=["ada", "hunter3"])
    text = operator.get(address("cron_edit", row.id)).context["form"]["args"].value()
    assert json.loads(text) == ["ada", "•••"]
    edited(operator, row, args='["eve", "•••"]')
    assert Cron.objects.get().args == ["eve", "hunter3"]


def test_arguments_are_kept_from_those_who_may_not_see_them(client_of):
    row = created(args={"mark": "whisper"})
    client = client_of("view_cron", "change_cron")
    assert "whisper" not in client.get(address("cron_edit", row.id)).content.decode()
    edited(client, row, priority="2", args='{"mark": "loud"}')
    after = Cron.objects.get()
    assert (after.priority, after.kwargs) == (2, {"mark": "whisper"})


def test_a_cron_of_the_code_says_where_to_change_it(operator):
    row = new_cron("every-second")
    said = "“every-second” is declared in the code; change it there. Here you can pause it, or run it now."
    assert said in shown(operator, address("cron_change", row.pk))
    assert said in shown(operator, address("cron_edit", row.pk))
    response = operator.post(address("cron_edit", row.pk), GOOD)
    assert response.status_code == 409
    assert said in response.content.decode()
    assert Cron.objects.get().version == row.version


def test_a_cron_of_the_code_says_its_file_and_line_where_it_is_known(operator):
    with override_settings(HELISCHED={"CRONS": ["tests.app.schedules.every_second"]}):
        from tests.app.schedules import every_second

        (entry, *_) = every_second.entries()
        row = new_cron(entry.name)
        text = shown(operator, address("cron_edit", row.pk))
    assert entry.origin in text
    assert f"“{entry.name}” is declared in {entry.origin}; change it there." in text


def test_a_cron_is_deleted_with_its_history_kept(operator):
    row = created()
    url = address("cron_delete", row.id)
    assert told(operator.post(url)) == ["Deleted 1."]
    after = Cron.objects.get()
    assert after.archived_at is not None
    assert entries_of(after) == ["Deleted: archived with its history."]
    assert LogEntry.objects.get().action_flag == DELETION
    assert told(operator.post(url))[-1] == "Deleted 0. Left alone 1: 1 already deleted."
    text = shown(operator, address("cron_edit", row.id))
    assert "It was deleted. Create it again, and it is the same row." in text
    operator.post(address("cron_add"), GOOD)
    assert Cron.objects.get().archived_at is None


@pytest.mark.parametrize(("way", "permission"), [("add", "add_cron"), ("edit", "change_cron")])
def test_the_form_needs_its_own_permission_and_the_token(client_of, way, permission):
    row = None if way == "add" else created()
    url = address("cron_add") if row is None else address("cron_edit", row.id)
    others = {"view_cron", "add_cron", "change_cron", "delete_cron", "pause_cron", "run_cron"} - {permission}
    before = list(Cron.objects.values())
    for client in (client_of(*others), client_of(permission) if way == "add" else client_of("view_cron")):
        assert client.get(url).status_code == 403
        assert client.post(url, GOOD).status_code == 403
        assert client.post(url, {**GOOD, "_preview": "1"}).status_code == 403
    allowed = client_of("view_cron", "view_job_args", permission, enforce_csrf_checks=True)
    assert allowed.post(url, GOOD).status_code == 403
    assert Client().post(url, GOOD).status_code == 302
    page = allowed.get(url, GOOD)
    assert page.status_code == 200
    assert client_of("view_cron", permission).put(url).status_code == 405
    assert list(Cron.objects.values()) == before
    token = {"csrfmiddlewaretoken": page.context["csrf_token"], "seen": page.context["form"]["seen"].value() or ""}
    assert allowed.post(url, {**GOOD, **token}).status_code == 302
    assert list(Cron.objects.values()) != before


def test_the_way_to_the_form_is_shown_to_those_who_may(client_of):
    row = created()
    for permissions, is_shown in (((), False), (("add_cron", "change_cron"), True)):
        client = client_of("view_cron", *permissions)
        assert (address("cron_add") in client.get(address("cron_changelist")).content.decode()) == is_shown
        assert (address("cron_edit", row.id) in client.get(address("cron_change", row.id)).content.decode()) == is_shown


def test_hostile_text_in_the_form_is_shown_as_text(operator):
    bad = '"><script>alert(1)</script>{{ 7|add:7 }}'
    for extra in ({}, {"_preview": "1"}):
        page = operator.post(address("cron_add"), {**dict.fromkeys(GOOD, bad), **extra}).content.decode()
        assert "<script>alert" not in page
        assert "{{ 7|add:7 }}" in page
    operator.post(address("cron_add"), {**GOOD, "name": bad, "args": json.dumps({"mark": bad})})
    row = Cron.objects.get(name=bad)
    assert "<script>alert" not in operator.get(address("cron_edit", row.pk)).content.decode()


@pytest.mark.parametrize("moment", ["0001-01-03 00:00+00:00", "9999-12-30 00:00+00:00"])
@pytest.mark.parametrize("field", ["start", "end"])
def test_the_ends_of_the_calendar_make_no_server_error(operator, field, moment):
    for extra in ({"_preview": "1"}, {}):
        assert operator.post(address("cron_add"), {**GOOD, field: moment, **extra}).status_code in {200, 302}
    for row in Cron.objects.all():
        assert operator.get(address("cron_edit", row.pk)).status_code == 200
