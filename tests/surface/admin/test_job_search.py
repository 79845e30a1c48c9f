"""The search box and the address: exact answers, and no error for garbage."""

from __future__ import annotations

import pytest

from django_helisched.jobs.keys import digest_of
from tests.surface.admin.pages import LISTS, address, rows, told
from tests.surface.admin.rows import new_cron, new_job

pytestmark = pytest.mark.django_db

NUL = "\x00"


def test_every_qualifier_finds_exactly_its_jobs(operator):
    cron, parent = new_cron("nightly"), new_job()
    job = new_job(
        fn_path="tests.app.jobs.send",
        queue="mail",
        state="failed",
        failure_reason="lost",
        cron=cron,
        space="acme",
        name='receipt "7',
        parent=parent,
        idempotency_key="receipt:7",
        key_digest=digest_of("acme", "receipt:7"),
    )
    new_job(fn_path="tests.app.jobs.sender", queue="mail2", name="receipt", space="acm")
    for query in (
        "fn:tests.app.jobs.send",
        "fn:send",
        "queue:mail",
        "state:failed",
        "cron:nightly",
        f"cron:{cron.pk}",
        "space:acme",
        f"id:{job.pk}",
        f"{job.pk}",
        f"{job.pk.hex}",
        f"parent:{parent.pk}",
        "space:acme key:receipt:7",
        "reason:lost",
        "reason:LOST queue:mail fn:send",
        "queue:other queue:mail",
    ):
        assert rows(operator, {"q": query}) == {job.pk}, query
    for query in ("queue:mail state:success", "key:receipt:7", "cron:nothing", "fn:jobs.send", "queue:mai"):
        assert rows(operator, {"q": query}) == set(), query


def test_a_value_with_blanks_is_quoted(operator):
    job = new_job(name="receipt 7")
    assert rows(operator, {"q": 'name:"receipt 7"'}) == {job.pk}


def test_an_empty_space_can_be_asked_for(operator):
    job = new_job()
    new_job(space="acme")
    assert rows(operator, {"q": "space:"}) == {job.pk}


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("worker:web1", "fn:, queue:, state:, cron:, space:, id:, name:, parent:, key:, reason:"),
        ("send_receipt", "“send_receipt” is not understood"),
        ("state:asleep", "state:asleep is not known. Use one of pending, scheduled"),
        ("reason:bad", "reason:bad is not known"),
        ("id:17", "id:17 is not the id of a job"),
        ("parent:x", "parent:x is not the id of a job"),
        (" ".join(["queue:a"] * 21), "more than 20 words"),
        ("<script>alert(1)</script>", "is not understood"),
    ],
)
def test_what_is_not_understood_is_said_and_finds_nothing(operator, query, sentence):
    new_job()
    response = operator.get(address("job_changelist"), {"q": query})
    assert sentence in " ".join(told(response))
    assert not response.context["cl"].result_list
    assert b"<script>alert" not in response.content


@pytest.mark.parametrize("name", ["state", "trigger", "created"])
@pytest.mark.parametrize("value", ["bogus", NUL, "🦊", "'; DROP TABLE x; --"])
def test_a_filter_without_that_choice_says_so_and_shows_nothing(operator, name, value):
    new_job()
    response = operator.get(address("job_changelist"), {name: value})
    assert response.status_code == 200
    assert f"The filter {name} has no choice" in told(response)[0]
    assert not response.context["cl"].result_list


@pytest.mark.parametrize(
    "query",
    [
        "q=%00", "q=fn:%00", "q=%ff%fe", "q=%ED%A0%80", "q=space:%F0%9F%A6%8A", "queue=%00", "queue=%ff",
        "p=0", "p=-1", "p=x", "p=99999999999999999999", "o=%00", "o=99", "o=-x", "all=", "e=1", "_popup=1",
        "created=", "state=&queue=", "q=" + "a" * 5000, "q=name:" + "a" * 5000,
    ],
)  # fmt: skip
def test_garbage_in_the_address_is_no_server_error(operator, query):
    new_job()
    response = operator.get(f"{address('job_changelist')}?{query}", follow=True)
    assert response.status_code == 200


@pytest.mark.parametrize("query", ["fn_path=x", "cron__name=x", "parent__parent__id=1", "id__in=%00", "password=x"])
def test_a_free_lookup_is_refused(operator, query):
    assert operator.get(f"{address('job_changelist')}?{query}").status_code == 400


@pytest.mark.parametrize("model", LISTS)
def test_a_nul_in_search_box_or_key_is_no_server_error(operator, model):
    assert operator.get(address(f"{model}_changelist"), {"q": NUL}).status_code == 200
    for view in ("change", "history"):
        response = operator.get(address(f"{model}_{view}", "a_00b"))
        assert response.status_code == 302


@pytest.mark.parametrize("key", ["garbage", "17", "_00", "🦊", "../../etc/passwd", "a" * 3000])
def test_a_job_that_is_not_there_leads_back_to_the_list(operator, key):
    response = operator.get(address("job_change", key), follow=True)
    assert response.redirect_chain[-1][0] == address("job_changelist")
    assert "There is no job with the id" in told(response)[0] or "There is no job" in response.content.decode()
