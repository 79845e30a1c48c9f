"""The page of one job: everything bounded, nothing that a reader may not see."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched.admin.arguments import MAX_TEXT
from django_helisched.admin.job_page import MAX_ATTEMPTS, MAX_CHILDREN
from django_helisched.models import Attempt, Progress
from tests.surface.admin.functions import log_in
from tests.surface.admin.pages import address, shown
from tests.surface.admin.rows import new_args, new_attempt, new_cron, new_job, now

pytestmark = pytest.mark.django_db


def test_the_summary_says_what_is_known(operator):
    cron = new_cron("nightly")
    job = new_job(
        state="failed",
        failure_reason="exhausted",
        attempts=3,
        queue="mail",
        space="acme",
        cron=cron,
        trigger="cron",
        idempotency_key="receipt:7",
        on_complete="shop.jobs.receipt_done",
        timeout=timedelta(seconds=90),
        app_version="2026.11",
        last_error="Boom: it broke",
    )
    text = shown(operator, address("job_change", job.pk))
    for part in (
        "failed",
        "exhausted",
        "Queue mail",
        "Space acme",
        "nightly",
        "receipt:7",
        "shop.jobs.receipt_done",
        "1 min 30 s",
        "3 of 3",
        "2026.11",
        "Boom: it broke",
        str(job.pk),
    ):
        assert part in text, part


def test_how_long_it_ran_is_said_of_the_attempt_alone(operator):
    """A job counts from its claim, an attempt from its body: two numbers under one word would contradict."""
    moment = now()
    job = new_job(state="success", started_at=moment - timedelta(milliseconds=49), completed_at=moment)
    new_attempt(job, outcome="success", started_at=moment - timedelta(milliseconds=7), ended_at=moment)
    text = shown(operator, address("job_change", job.pk))
    assert "7 ms" in text
    assert "49 ms" not in text


def test_arguments_are_hidden_without_the_permission(client_of):
    job = new_job(state="success")
    new_args(job, "visible-to-some", context="context-of-some")
    new_attempt(job, outcome="success", result="result-of-some")
    lacking = shown(client_of("view_job"), address("job_change", job.pk))
    allowed = shown(client_of("view_job", "view_job_args"), address("job_change", job.pk))
    assert "You may not see arguments" in lacking
    for secret in ("visible-to-some", "context-of-some", "result-of-some"):
        assert secret not in lacking
        assert secret in allowed


def test_what_looks_like_a_secret_is_masked_at_any_depth(operator):
    job = new_job(state="success", fn_path="nobody.knows")
    new_args(
        job,
        {"user": "ada", "PassWord": "s3cr3t-1"},
        api_key="s3cr3t-2",
        headers=[{"X-Auth-Token": "s3cr3t-3", "Accept": "*/*"}],
        client_secret={"value": "s3cr3t-4"},
        context={"apiKey": "s3cr3t-5"},
    )
    new_attempt(job, outcome="success", result={"access_token": "s3cr3t-6"})
    page = shown(operator, address("job_change", job.pk))
    assert "s3cr3t" not in page
    assert page.count("•••") == 6
    assert "ada" in page
    assert "*/*" in page


def test_a_positional_secret_is_masked_by_its_parameter(operator):
    job = new_job(fn_path=log_in.path)
    new_args(job, "ada", "s3cr3t")
    page = shown(operator, address("job_change", job.pk))
    assert "s3cr3t" not in page
    assert 'user "ada"' in page


def test_a_large_value_is_cut_and_says_so(operator):
    job = new_job()
    new_args(job, text="x" * (MAX_TEXT + 998))
    page = shown(operator, address("job_change", job.pk))
    assert "1000 more characters are not shown." in page
    assert "x" * (MAX_TEXT + 1) not in page


def test_many_arguments_are_cut_and_say_so(operator):
    job = new_job()
    new_args(job, *range(60), **{f"key{number}": number for number in range(60)})
    assert "20 more" in shown(operator, address("job_change", job.pk))


def test_attempts_are_listed_newest_first_and_bounded(operator):
    job = new_job(state="failed", attempt_count=MAX_ATTEMPTS + 5)
    for number in range(1, MAX_ATTEMPTS + 6):
        new_attempt(job, error=f"error {number}.", error_class="shop.Broken", traceback="Traceback: line 1")
    with CaptureQueriesContext(connection) as captured:
        page = shown(operator, address("job_change", job.pk))
    assert page.index(f"error {MAX_ATTEMPTS + 5}.") < page.index(f"error {MAX_ATTEMPTS + 4}.")
    assert "error 5." not in page
    assert f"The newest {MAX_ATTEMPTS} are shown." in page
    assert sum('FROM "helisched_attempt"' in query["sql"].replace("`", '"') for query in captured) == 1


def test_an_attempt_shows_how_it_ended(operator):
    job = new_job(state="failed")
    moment = now()
    new_attempt(
        job,
        outcome="lost",
        started_at=moment - timedelta(seconds=65),
        ended_at=moment,
        worker_id="web9:1:ab",
        log="step one\nstep two",
        traceback="Traceback of it",
    )
    page = operator.get(address("job_change", job.pk)).content.decode()
    for part in (
        "lost",
        "1 min 5 s",
        "web9:1:ab",
        "step two",
        "<summary>Traceback</summary><pre>Traceback of it</pre>",
    ):
        assert part in page


def test_parent_and_children_are_linked(operator):
    parent = new_job(fn_path="shop.jobs.close_order")
    job = new_job(parent=parent)
    child = new_job(fn_path="shop.jobs.send_receipt", parent=job, state="success")
    page = operator.get(address("job_change", job.pk)).content.decode()
    assert f'<a href="{address("job_change", parent.pk)}">close_order</a>' in page
    assert f'<a href="{address("job_change", child.pk)}">send_receipt</a>' in page


def test_a_pruned_parent_is_named(operator):
    gone = uuid4()
    text = shown(operator, address("job_change", new_job(parent_id=gone).pk))
    assert f"Enqueued by {gone} (pruned)" in text


def test_children_are_bounded_and_the_rest_is_a_search_away(operator):
    parent = new_job()
    for _ in range(MAX_CHILDREN + 1):
        new_job(parent=parent)
    page = operator.get(address("job_change", parent.pk)).content.decode()
    assert f"The first {MAX_CHILDREN} are shown." in page
    assert f'href="{address("job_changelist")}?q=parent%3A{parent.pk}"' in page
    assert page.count('<td><a href="/admin/helisched/job/') == MAX_CHILDREN


def test_the_page_costs_the_same_with_many_children(operator):
    job = new_job()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            operator.get(address("job_change", job.pk))
        return len(captured)

    new_job(parent=job)
    new_attempt(job)
    queries()
    few = queries()
    for _ in range(20):
        new_job(parent=job)
        new_attempt(job)
    assert queries() == few


def test_progress_of_this_claim_is_shown_and_of_an_earlier_one_is_not(operator):
    job = new_job(state="in_progress", fence=2)
    progress = Progress.objects.create(job=job, fence=2, done=40, total=100, message="page 40", updated_at=now())
    assert "40/100 page 40" in shown(operator, address("job_change", job.pk))
    Progress.objects.filter(pk=progress.pk).update(fence=1)
    assert "40/100" not in shown(operator, address("job_change", job.pk))


@pytest.mark.parametrize(("state", "is_shown"), [("failed", True), ("success", True), ("pending", False)])
def test_a_job_that_has_ended_shows_how_far_it_came(operator, state, is_shown):
    job = new_job(state=state, fence=2)
    Progress.objects.create(job=job, fence=2, done=40, total=100, message="page 40", updated_at=now())
    assert ("40/100 page 40" in shown(operator, address("job_change", job.pk))) == is_shown


@pytest.mark.parametrize(
    ("state", "pressable", "reasons"),
    [
        ("pending", {"cancel"}, ["It is pending already.", "Only a running job can be stopped by force."]),
        ("in_progress", {"cancel", "force_stop"}, ["It is running. Cancel it first."]),
        ("success", {"requeue"}, ["It has ended.", "Only a running job can be stopped by force."]),
        ("failed", {"requeue"}, ["It has ended."]),
        ("canceled", {"requeue"}, ["It has ended."]),
    ],
)
def test_a_button_out_of_place_is_text_with_the_reason(operator, state, pressable, reasons):
    job = new_job(state=state)
    page = operator.get(address("job_change", job.pk)).content.decode()
    for operation in ("requeue", "cancel", "force_stop"):
        assert (f'href="{address(f"job_{operation}", job.pk)}"' in page) == (operation in pressable)
    for reason in reasons:
        assert reason in page


def test_a_job_that_was_asked_to_stop_is_not_asked_again_by_the_button(operator):
    job = new_job(state="in_progress", cancel_requested_at=now())
    page = operator.get(address("job_change", job.pk)).content.decode()
    assert "It was asked to stop already." in page
    assert address("job_cancel", job.pk) not in page
    assert address("job_force_stop", job.pk) in page


def test_buttons_are_absent_without_permission(client_of):
    job = new_job(state="in_progress")
    page = client_of("view_job").get(address("job_change", job.pk)).content.decode()
    for operation in ("requeue", "cancel", "force_stop"):
        assert address(f"job_{operation}", job.pk) not in page
    assert "Force stop" not in page


def test_the_page_of_an_operation_out_of_place_has_no_button(operator):
    page = operator.get(address("job_requeue", new_job().pk)).content.decode()
    assert "It is pending already." in page
    assert "<form method=" not in page.partition('id="content"')[2]


def test_what_operators_did_is_on_the_page_and_in_the_history(operator):
    job = new_job(state="failed")
    operator.post(address("job_requeue", job.pk))
    assert "ada Requeued." in shown(operator, address("job_change", job.pk))
    assert "Requeued." in shown(operator, address("job_history", job.pk))


def test_the_result_of_the_last_success_is_shown(operator):
    job = new_job(state="success")
    new_attempt(job, outcome="success", result={"total": 1})
    new_attempt(job, outcome="success", result={"total": 2})
    page = shown(operator, address("job_change", job.pk))
    assert '"total": 2' in page
    assert '"total": 1' not in page
    assert Attempt.objects.count() == 2
