"""Who may do what, and that reading changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_helisched import wiring
from django_helisched.models import Cron, Job, Queue
from tests.surface.admin.pages import LISTS, act, address
from tests.surface.admin.rows import entries_of, new_cron, new_job, new_worker, state_of

pytestmark = pytest.mark.django_db


def snapshot() -> list[Any]:
    return [list(model.objects.order_by("pk").values()) for model in (Job, Cron, Queue, LogEntry)]


@pytest.mark.parametrize("model", LISTS)
def test_without_permissions_there_is_no_page(client_of, model):
    rows = {"job": new_job(), "cron": new_cron(), "worker": new_worker(), "queue": Queue.objects.create(name="mail")}
    client = client_of()
    for view, args in (("changelist", ()), ("change", (rows[model].pk,)), ("history", (rows[model].pk,))):
        assert client.get(address(f"{model}_{view}", *args)).status_code == 403
    assert Client().get(address(f"{model}_changelist")).status_code == 302


@pytest.mark.parametrize("model", sorted(set(LISTS) - {"cron"}))
def test_nobody_adds_changes_or_deletes_rows(operator, model):
    rows = {"job": new_job(), "cron": new_cron(), "worker": new_worker(), "queue": Queue.objects.create(name="mail")}
    key = rows[model].pk
    before = snapshot()
    assert operator.get(address(f"{model}_add")).status_code == 403
    assert operator.post(address(f"{model}_add"), {}).status_code == 403
    assert operator.post(address(f"{model}_delete", key), {"post": "yes"}).status_code == 403
    assert operator.post(address(f"{model}_change", key), {"state": "success"}).status_code == 405
    act(operator, model, "delete_selected", [key], post="yes")
    assert snapshot() == before


def test_nobody_changes_or_deletes_a_cron_of_the_code(operator):
    key = new_cron().pk
    before = snapshot()
    assert operator.post(address("cron_change", key), {"enabled": ""}).status_code == 405
    assert operator.post(address("cron_edit", key), {"expr": "* * * * *"}).status_code == 409
    assert operator.post(address("cron_delete", key), {"post": "yes"}).status_code == 302
    act(operator, "cron", "delete_selected", [key], post="yes")
    assert snapshot() == before


OPERATIONS = [
    ("job", "requeue", "requeue_job"),
    ("job", "cancel", "cancel_job"),
    ("job", "force_stop", "cancel_job"),
    ("cron", "pause", "pause_cron"),
    ("cron", "resume", "pause_cron"),
    ("cron", "run_now", "run_cron"),
    ("cron", "delete", "delete_cron"),
    ("queue", "pause", "change_queue"),
    ("queue", "resume", "change_queue"),
]


def a_row(model: str, operation: str) -> Any:
    """Return a row to which the operation can be done."""
    if model == "job":
        return new_job(state="failed" if operation == "requeue" else "in_progress")
    paused = operation == "resume"
    moment = wiring.job_store().now() if paused else None
    if model == "queue":
        return Queue.objects.create(name="mail", paused_at=moment)
    return new_cron(paused_at=moment, source="operator" if operation == "delete" else "code")


@pytest.mark.parametrize(("model", "operation", "permission"), OPERATIONS)
def test_an_operation_needs_its_own_permission(client_of, model, operation, permission):
    row = a_row(model, operation)
    url = address(f"{model}_{operation}", row.pk)
    others = {f"view_{model}", f"add_{model}", f"delete_{model}", "requeue_job", "cancel_job", "pause_cron", "run_cron"}
    lacking = client_of(*(others - {permission}))
    blind = client_of(permission) if model != "queue" else client_of("add_queue")
    before = snapshot()
    for client in (lacking, blind, client_of()):
        assert client.get(url).status_code == 403
        assert client.post(url).status_code == 403
    assert Client().post(url).status_code == 302
    assert snapshot() == before
    allowed = client_of(f"view_{model}", permission)
    assert allowed.post(url).status_code == 302
    assert snapshot() != before


@pytest.mark.parametrize(
    ("model", "action", "operation", "permission"),
    [
        ("job", "requeue_selected", "requeue", "requeue_job"),
        ("job", "cancel_selected", "cancel", "cancel_job"),
        ("cron", "pause_selected", "pause", "pause_cron"),
        ("cron", "resume_selected", "resume", "pause_cron"),
        ("cron", "run_selected", "run_now", "run_cron"),
    ],
)
def test_an_action_without_its_permission_is_absent_and_does_nothing(client_of, model, action, operation, permission):
    row = a_row(model, operation)
    others = {"requeue_job", "cancel_job", "pause_cron", "run_cron"} - {permission}
    lacking = client_of(f"view_{model}", *others)
    before = snapshot()
    for extra in ({}, {"select_across": "1"}):
        act(lacking, model, action, [row.pk], **extra)
    assert snapshot() == before
    assert f'value="{action}"' not in lacking.get(address(f"{model}_changelist")).content.decode()
    allowed = client_of(f"view_{model}", permission)
    assert f'value="{action}"' in allowed.get(address(f"{model}_changelist")).content.decode()
    act(allowed, model, action, [row.pk])
    assert len(entries_of(row)) == 1


@pytest.mark.parametrize(("model", "operation", "permission"), OPERATIONS)
def test_reading_an_operation_changes_nothing(operator, model, operation, permission):
    row = a_row(model, operation)
    before = snapshot()
    url = address(f"{model}_{operation}", row.pk)
    page = operator.get(url)
    assert page.status_code == 200
    assert b'name="csrfmiddlewaretoken"' in page.content
    assert operator.head(url).status_code == 200
    for method in ("options", "put", "delete", "patch"):
        assert getattr(operator, method)(url).status_code == 405
    operator.get(url, {"post": "yes", "_method": "POST"})
    assert snapshot() == before


@pytest.mark.parametrize(("model", "operation", "permission"), OPERATIONS)
def test_a_post_without_the_token_changes_nothing(client_of, model, operation, permission):
    row = a_row(model, operation)
    client = client_of(f"view_{model}", permission, enforce_csrf_checks=True)
    before = snapshot()
    assert client.post(address(f"{model}_{operation}", row.pk)).status_code == 403
    assert snapshot() == before


def test_an_action_without_the_token_changes_nothing(client_of):
    job = new_job(state="failed")
    client = client_of("view_job", "requeue_job", enforce_csrf_checks=True)
    assert act(client, "job", "requeue_selected", [job.pk]).status_code == 403
    assert state_of(job) == ("failed", False)
