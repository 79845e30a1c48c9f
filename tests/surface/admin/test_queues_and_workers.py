from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched.models import Queue
from tests.surface.admin.pages import address, shown, told
from tests.surface.admin.rows import new_cron, new_job, new_worker, now

pytestmark = pytest.mark.django_db


def test_a_queue_is_paused_by_its_name_and_resumed(operator):
    new_job(queue="mail")
    response = operator.post(address("queue_pause_named"), {"name": "mail", "reason": "SMTP is down"})
    assert response.url == address("queue_changelist")
    assert told(response) == ['Paused "mail".']
    row = Queue.objects.get()
    assert (row.name, row.paused_by, row.reason) == ("mail", "ada", "SMTP is down")
    assert row.paused_at is not None
    assert "paused" in shown(operator, address("queue_changelist"))
    response = operator.post(address("queue_resume", "mail"))
    assert told(response)[-1] == "Resumed 1."
    assert [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")] == [
        "Paused. Reason: SMTP is down",
        "Resumed.",
    ]


def test_pausing_what_nothing_uses_is_told_with_the_names_that_are_used(operator):
    new_job(queue="billing")
    paused, doubt = told(operator.post(address("queue_pause_named"), {"name": "defualt"}))
    assert paused == 'Paused "defualt".'
    assert doubt.startswith("No waiting or running job, no cron and no registered function uses this queue (they use:")
    assert {"default", "billing"} <= set(doubt.partition("use: ")[2].removesuffix(").").split(", "))


@pytest.mark.parametrize(
    "given",
    [{}, {"hold": "limit", "limit_key": "smtp"}, {"state": "in_progress"}],
    ids=["waiting", "held", "running"],
)
def test_a_live_job_makes_its_queue_one_that_is_used(operator, given):
    new_job(queue="billing", **given)
    assert told(operator.post(address("queue_pause_named"), {"name": "billing"})) == ['Paused "billing".']


def test_a_cron_makes_its_queue_one_that_is_used(operator):
    new_cron(queue="reports")
    assert told(operator.post(address("queue_pause_named"), {"name": "reports"})) == ['Paused "reports".']


def test_a_finished_job_does_not_make_its_queue_one_that_is_used(operator):
    new_job(queue="billing", state="success")
    assert len(told(operator.post(address("queue_pause_named"), {"name": "billing"}))) == 2


def test_the_list_says_what_it_lists_and_which_queues_there_are_besides(operator):
    new_job(queue="billing")
    new_job(queue="old", state="success")
    Queue.objects.create(name="stands", paused_at=now())
    new_job(queue="stands")
    url = address("queue_changelist")
    besides = shown(operator, url).partition("Known besides:")[2].partition(".")[0]
    assert "Listed are the queues that were ever paused" in shown(operator, url)
    assert {"default", "billing"} <= {name.strip() for name in besides.split(",")}
    assert "stands" not in besides
    assert "old" not in besides
    assert f'href="{address("job_changelist")}?queue=billing"' in operator.get(url).content.decode()


def test_the_list_of_queues_reads_no_job_by_sorting_all(operator):
    new_job(queue="billing")
    with CaptureQueriesContext(connection) as captured:
        operator.get(address("queue_changelist"))
    assert not [query["sql"] for query in captured if "DISTINCT" in query["sql"]]


def test_resuming_what_is_not_paused_is_told(operator):
    Queue.objects.create(name="mail")
    assert told(operator.post(address("queue_resume", "mail"))) == ["Resumed 0. Left alone 1: 1 not paused."]


@pytest.mark.parametrize("name", ["", "\x00", "x" * 101])
def test_a_name_that_no_queue_can_have_is_an_error_of_the_form(operator, name):
    page = operator.post(address("queue_pause_named"), {"name": name})
    assert page.status_code == 200
    assert "errorlist" in page.content.decode()
    assert not Queue.objects.exists()


def test_pausing_by_name_needs_post_token_and_permission(client_of):
    url = address("queue_pause_named")
    assert client_of("view_queue").get(url).status_code == 403
    assert client_of("view_queue").post(url, {"name": "mail"}).status_code == 403
    strict = client_of("view_queue", "change_queue", enforce_csrf_checks=True)
    assert strict.get(url).status_code == 200
    assert strict.post(url, {"name": "mail"}).status_code == 403
    assert client_of("change_queue").put(url).status_code == 405
    assert not Queue.objects.exists()


def test_the_way_to_pause_is_shown_to_those_who_may(client_of):
    url = address("queue_pause_named")
    assert url in client_of("change_queue").get(address("queue_changelist")).content.decode()
    assert url not in client_of("view_queue").get(address("queue_changelist")).content.decode()


def test_a_pause_that_has_run_out_is_no_pause(operator):
    moment = now()
    Queue.objects.create(name="over", paused_at=moment - timedelta(hours=2), until=moment - timedelta(hours=1))
    Queue.objects.create(name="stands", paused_at=moment - timedelta(hours=2), until=moment + timedelta(hours=1))
    text = shown(operator, address("queue_changelist"))
    assert "over running" in text
    assert "stands paused" in text


def test_a_queue_with_an_odd_name_has_its_page(operator):
    from django.contrib.admin.utils import quote

    for name in ("a/b", "with blank", "ünïcode", "_5F", "?x=1&y=2#z"):
        Queue.objects.create(name=name)
        assert operator.get(address("queue_change", quote(name))).status_code == 200
        response = operator.post(address("queue_pause", quote(name)))
        assert told(response)[-1] == "Paused 1."


def test_a_worker_that_went_silent_is_stale(operator, settings):
    settings.HELISCHED = {"LEASE": 30}
    moment = now()
    new_worker("fresh", last_seen=moment - timedelta(seconds=20))
    new_worker("silent", last_seen=moment - timedelta(seconds=40))
    new_worker("gone", last_seen=moment - timedelta(days=1), state="stopped")
    text = shown(operator, address("worker_changelist"))
    assert text.count("stale") == 1
    assert text.index("fresh") < text.index("silent") < text.index("stale") < text.index("gone")


def test_a_worker_says_what_it_runs(operator):
    worker = new_worker(
        in_flight=3, queues=["mail", "default"], functions=["shop.jobs.close"], declarations=["code::a"]
    )
    listed = shown(operator, address("worker_changelist"))
    assert "3 of 4 seats" in listed
    assert "mail, default" in listed
    page = shown(operator, address("worker_change", worker.pk))
    assert "shop.jobs.close" in page
    assert "code::a" in page


def test_a_worker_says_which_queues_it_leaves_to_others(operator):
    new_worker(queues=["!slow", "!mail*"])
    assert "all but slow and mail*" in shown(operator, address("worker_changelist"))


def test_a_worker_row_of_the_wrong_shape_is_shown(operator):
    worker = new_worker(queues={"a": 1}, functions=7, declarations="x")
    assert "every queue" in shown(operator, address("worker_changelist"))
    assert operator.get(address("worker_change", worker.pk)).status_code == 200
