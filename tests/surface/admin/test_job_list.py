"""The list of jobs: what it shows, what it costs, and what it does with garbage."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched.admin.filters import first_id_at
from django_helisched.admin.jobs import JobAdmin
from django_helisched.admin.paginator import CAP, CappedPaginator
from django_helisched.models import Job, Queue
from tests.surface.admin.pages import LISTS, address, rows, shown
from tests.surface.admin.rows import new_cron, new_job, now

pytestmark = pytest.mark.django_db


def an_old_id() -> UUID:
    return UUID(int=first_id_at(now() - timedelta(days=40)).int | 7)


@pytest.mark.parametrize("model", LISTS)
def test_a_list_without_rows_is_a_page(operator, model):
    assert operator.get(address(f"{model}_changelist")).status_code == 200


def test_a_row_says_what_the_job_is_and_how_it_stands(operator):
    moment = now()
    new_job(
        fn_path="shop.jobs.send_receipt",
        name="receipt 7",
        state="failed",
        failure_reason="exhausted",
        queue="mail",
        priority=7,
        started_at=moment - timedelta(seconds=3),
        completed_at=moment,
        last_error="SMTPServerDisconnected: timed out",
    )
    text = shown(operator, address("job_changelist"))
    for part in ("send_receipt · receipt 7", "failed", "exhausted", "mail · 7", "took 3 s", "SMTPServerDisconnected"):
        assert part in text


def test_a_pill_has_an_icon_and_a_word(operator):
    new_job(state="in_progress")
    page = operator.get(address("job_changelist")).content.decode()
    assert '<span class="hs-pill hs-in_progress"><svg' in page
    assert "in progress</span>" in page


def test_the_source_is_the_cron_or_the_parent(operator):
    cron = new_cron("digest")
    parent = new_job(cron=cron, trigger="cron")
    new_job(parent=parent)
    page = operator.get(address("job_changelist")).content.decode()
    assert f'<a href="{address("cron_change", cron.pk)}">digest</a>' in page
    assert f'<a href="{address("job_change", parent.pk)}">parent</a>' in page


def test_a_job_of_a_deleted_cron_is_shown(operator):
    new_job(cron_id=uuid4(), trigger="cron")
    assert "a deleted cron" in shown(operator, address("job_changelist"))


def populate(count: int) -> None:
    parent = new_job()
    for number in range(count - 1):
        new_job(cron=new_cron(f"cron {number} of {count}"), parent=parent, queue=f"queue{number}", last_error="boom")


def test_the_queries_are_as_many_for_a_hundred_rows_as_for_ten(operator):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert len(rows(operator)) == Job.objects.count()
        return len(captured) - 1  # the assertion's own count

    populate(10)
    rows(operator)  # what is read once for the process
    ten = queries()
    populate(90)
    rows(operator)  # MySQL is asked about each queue by name, and about a new one once more
    assert queries() == ten
    assert ten <= 12


def test_more_than_a_page_is_counted_to_the_cap_and_no_further(operator):
    for _ in range(101):
        new_job()
    for data, shown_rows in (({}, 100), ({"p": "2"}, 1), ({"all": ""}, 101)):
        with CaptureQueriesContext(connection) as captured:
            assert len(rows(operator, data)) == shown_rows
        (count,) = [query["sql"] for query in captured if "COUNT(" in query["sql"]]
        assert f"LIMIT {CAP + 1}" in count


@pytest.mark.parametrize(
    "query",
    ["", "p=2", "q=queue:mail", "state=failed", "queue=mail", "created=all", "o=1", "o=-1", "o=3.2"],
)
def test_nothing_counts_or_sorts_the_whole_table(operator, query):
    for _ in range(3):
        new_job(queue="mail")
    with CaptureQueriesContext(connection) as captured:
        operator.get(f"{address('job_changelist')}?{query}")
    read = [query["sql"] for query in captured if "helisched_job" in query["sql"]]
    # The walk from queue to queue takes the first entry of an index for each, whatever it orders by.
    statements = [sql for sql in read if "WITH RECURSIVE" not in sql and "FORCE INDEX (helisched_job_hot)" not in sql]
    assert statements
    for sql in statements:
        assert "COUNT(" not in sql or f"LIMIT {CAP + 1}" in sql
        assert "DISTINCT" not in sql
        if "ORDER BY" in sql:
            order = sql.partition("ORDER BY")[2].replace('"', "").replace("`", "")
            assert order.split()[0] in {"helisched_job.id", "1"}, sql


def test_the_filter_offers_the_queue_that_is_asked_for(operator):
    page = operator.get(address("job_changelist"), {"queue": "over"})
    assert ("over", "over") in page.context["cl"].filter_specs[1].lookup_choices


class SmallPaginator(CappedPaginator):
    cap = 3


class SmallJobAdmin(JobAdmin):
    paginator = SmallPaginator


def test_the_paginator_counts_to_its_cap_and_says_that_there_is_more():
    jobs = [new_job() for _ in range(4)]
    capped = SmallPaginator(Job.objects.order_by("-pk"), 2)
    assert (capped.count, capped.is_capped, capped.num_pages) == (3, True, 2)
    whole = SmallPaginator(Job.objects.order_by("-pk").exclude(pk=jobs[0].pk), 2)
    assert (whole.count, whole.is_capped) == (3, False)


def test_the_list_says_that_it_is_capped(rf, admin_user):
    for _ in range(4):
        new_job()
    request = rf.get(address("job_changelist"))
    request.user = admin_user
    response: Any = SmallJobAdmin(Job, admin.site).changelist_view(request)
    assert "The newest 3 jobs; filter to reach older ones." in response.render().content.decode()


@pytest.mark.parametrize(
    "word",
    ["pending", "scheduled", "retrying", "held", "in_progress", "success", "failed", "canceled"],
)
def test_each_state_and_view_shows_its_jobs(operator, word):
    later = now() + timedelta(hours=1)
    jobs = {
        "pending": new_job(),
        "scheduled": new_job(next_run_at=later),
        "retrying": new_job(attempts=1, next_run_at=later),
        "held": new_job(hold="unknown_function"),
        **{state: new_job(state=state) for state in ("in_progress", "success", "failed", "canceled")},
    }
    expected = {jobs[word].pk}
    if word == "pending":
        expected = {jobs[view].pk for view in ("pending", "scheduled", "retrying", "held")}
    assert rows(operator, {"state": word}) == expected
    assert rows(operator, {"q": f"state:{word}"}) == expected


@pytest.mark.parametrize(
    ("alias", "state"),
    [
        ("running", "in_progress"),
        ("succeeded", "success"),
        ("dead", "failed"),
        ("cancelled", "canceled"),
        ("DEAD", "failed"),
    ],
)
def test_the_words_of_other_systems_name_our_states(operator, alias, state):
    for each in ("in_progress", "success", "failed", "canceled"):
        new_job(state=each)
    expected = rows(operator, {"state": state})
    assert len(expected) == 1
    assert rows(operator, {"state": alias}) == expected
    assert rows(operator, {"q": f"state:{alias}"}) == expected


def test_queue_and_trigger_narrow_the_list(operator):
    mail, cron = new_job(queue="mail"), new_job(trigger="cron")
    assert rows(operator, {"queue": "mail"}) == {mail.pk}
    assert rows(operator, {"trigger": "cron"}) == {cron.pk}


def test_the_queues_on_offer_come_from_functions_switches_and_waiting_jobs(operator):
    Queue.objects.create(name="paused once")
    new_job(queue="never declared")
    new_job(queue="over", state="success")
    choices = operator.get(address("job_changelist")).context["cl"].filter_specs[1].lookup_choices
    names = [name for name, _ in choices]
    assert {"default", "paused once", "never declared"} <= set(names)
    assert "over" not in names


def test_a_week_is_shown_by_default_and_everything_on_demand(operator):
    old, new = new_job(id=an_old_id(), state="success"), new_job(state="success")
    assert rows(operator) == {new.pk}
    assert rows(operator, {"created": "30d"}) == {new.pk}
    assert rows(operator, {"created": "all"}) == {new.pk, old.pk}
    page = operator.get(address("job_changelist")).content.decode()
    assert '<a href="?created=all">everything</a>' in page.replace("\n", "")


@pytest.mark.parametrize("data", [{"state": "pending"}, {"state": "retrying"}, {"q": "id:{id}"}, {"q": "{id}"}])
def test_unfinished_jobs_and_jobs_asked_for_by_id_are_shown_however_old(operator, data):
    old = new_job(id=an_old_id(), attempts=1)
    assert rows(operator, {key: value.format(id=old.pk) for key, value in data.items()}) == {old.pk}
