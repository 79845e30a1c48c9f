"""Stored text is never markup, wherever it is shown; and no page needs what a strict policy forbids."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User

from django_helisched.models import Job, Progress, Queue
from tests.surface.admin.pages import LISTS, address
from tests.surface.admin.rows import new_args, new_attempt, new_cron, new_fire, new_job, new_worker, now

pytestmark = pytest.mark.django_db

BAD = '"><script>alert(1)</script>\'<img src=x onerror=alert(1)>{{ 7|add:7 }}{% now "Y" %}'
KEY = BAD[:64]


@pytest.fixture
def pages(operator) -> list[str]:
    """Give the addresses of all pages over rows whose every text is hostile."""
    cron = new_cron(
        BAD,
        source=BAD[:80],
        space=BAD,
        tz=KEY,
        fn_path=BAD,
        kwargs={BAD: BAD},
        queue=BAD,
        paused_at=now(),
        paused_by=BAD,
        pause_reason=BAD,
        declared_by=BAD,
        last_error=BAD,
        tzdata_version=BAD[:16],
        spec=BAD,
    )
    readable = new_cron("readable", fn_path=BAD, last_error=BAD)
    held = new_cron(BAD, source="operator", space=BAD, fn_path=BAD, kwargs={BAD: BAD}, queue=BAD, tz=KEY, spec=BAD)
    parent = new_job(fn_path=BAD, name=BAD, cron=cron)
    texts = {
        "name": BAD,
        "space": BAD,
        "queue": BAD,
        "last_error": BAD,
        "app_version": KEY,
        "idempotency_key": BAD,
        "on_complete": BAD,
        "fn_path": BAD,
        "parent": parent,
    }
    running = new_job(state="in_progress", lease_holder=BAD, **texts)
    Progress.objects.create(job=running, fence=1, done=1, message=BAD, updated_at=now())
    done = new_job(state="success", **texts)
    new_job(fn_path=BAD, name=BAD, parent=done)
    new_args(done, BAD, context={BAD: BAD}, **{BAD: [BAD]})
    new_attempt(
        done, error=BAD, error_class=BAD, traceback=BAD, log=BAD, worker_id=BAD, result={BAD: BAD}, outcome="success"
    )
    for hostile in (cron, readable):
        new_fire(hostile, now() - timedelta(days=1), reason=BAD)
    worker = new_worker(BAD, host=BAD, version=KEY, queues=[BAD], functions=[BAD], declarations=[BAD], state="running")
    queue = Queue.objects.create(name=BAD, paused_at=now(), paused_by=BAD, reason=BAD)
    for row in (done, cron):
        LogEntry.objects.log_actions(User.objects.get().pk, [row], CHANGE, BAD)
    jobs = [address(f"job_{view}", job.pk) for view in ("change", "history") for job in (running, done, parent)]
    return [
        *(address(f"{model}_changelist") for model in LISTS),
        *jobs,
        address("job_cancel", running.pk),
        address("job_requeue", done.pk),
        *(address(f"cron_{view}", cron.pk) for view in ("change", "history", "pause", "resume", "run_now")),
        address("cron_change", readable.pk),
        *(address(f"cron_{view}", held.pk) for view in ("change", "edit", "delete", "backfill")),
        address("cron_edit", cron.pk),
        _quoted("worker_change", worker.pk),
        _quoted("queue_change", queue.pk),
        _quoted("queue_resume", queue.pk),
        address("queue_pause_named"),
    ]


class Tags(HTMLParser):
    """The elements of a page as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def _quoted(view: str, key: Any) -> str:
    return address(view, quote(key))


def test_hostile_text_is_shown_as_text_on_every_page(operator, pages):
    for url in pages:
        response = operator.get(url)
        assert response.status_code == 200, url
        page = response.content.decode()
        assert "<script>alert" not in page, url
        assert "<img src=x" not in page, url
        assert "{{ 7|add:7 }}" in page or url == address("queue_pause_named"), url
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in operator.get(pages[0]).content.decode()


def test_no_page_of_ours_has_inline_style_or_script(operator, pages):
    for url in pages:
        page = operator.get(url).content.decode()
        for tag, attributes in Tags(page).found:
            assert tag != "style", url
            assert tag != "script" or attributes.get("src"), url
            assert not [name for name in attributes if name == "style" or name.startswith("on")], (url, tag)
            assert not str(attributes.get("href")).startswith("javascript:"), url


def test_a_hostile_search_and_filter_is_shown_as_text(operator):
    Job.objects.all().delete()
    for name in ("q", "state", "queue", "trigger", "created"):
        page = operator.get(address("job_changelist"), {name: BAD}).content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page


def test_a_hostile_reason_is_stored_and_shown_as_text(operator):
    cron = new_cron()
    response = operator.post(address("cron_pause", cron.pk), {"reason": BAD}, follow=True)
    page = response.content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
