"""Requeue, cancel and force stop: who may, what changes, and what is said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.messages.storage.fallback import FallbackStorage

from django_helisched import wiring
from django_helisched.admin.jobs import JobAdmin
from django_helisched.admin.reports import MAX_BUSY
from django_helisched.exceptions import Busy
from django_helisched.models import Job
from tests.surface.admin.pages import act, address, told
from tests.surface.admin.rows import entries_of, new_attempt, new_job, state_of

if TYPE_CHECKING:
    from uuid import UUID

pytestmark = pytest.mark.django_db


JOB_OPERATIONS = ("requeue", "cancel", "force_stop")


# What changes


def test_requeue_puts_the_job_back_and_goes_to_its_page(operator):
    job = new_job(state="failed", failure_reason="exhausted", attempts=3, last_error="boom")
    new_attempt(job)
    response = operator.post(address("job_requeue", job.pk))
    assert response.url == address("job_change", job.pk)
    assert told(response) == ["Requeued 1."]
    assert state_of(job) == ("pending", False)
    assert entries_of(job) == ["Requeued."]


def test_cancel_ends_a_pending_job(operator):
    job = new_job()
    response = operator.post(address("job_cancel", job.pk))
    assert told(response) == ["Canceled 1."]
    assert state_of(job) == ("canceled", False)
    assert entries_of(job) == ["Canceled."]


def test_cancel_asks_a_running_job_to_stop(operator):
    job = new_job(state="in_progress")
    response = operator.post(address("job_cancel", job.pk))
    assert told(response) == ["Canceled 0. Asked 1 running job to stop."]
    assert state_of(job) == ("in_progress", True)
    assert entries_of(job) == ["Asked to stop."]


def test_force_stop_ends_a_running_job_at_once(operator):
    job = new_job(state="in_progress", fence=4)
    response = operator.post(address("job_force_stop", job.pk))
    assert told(response) == ["Canceled 1."]
    assert state_of(job) == ("canceled", True)
    assert Job.objects.get(pk=job.pk).fence == 5
    assert entries_of(job) == ["Stopped by force."]


def test_the_filters_of_the_list_survive_an_operation(operator):
    job = new_job(state="failed")
    page = f"?_changelist_filters={'state%3Dfailed%26p%3D2'}"
    response = operator.post(address("job_requeue", job.pk) + page)
    assert response.url == address("job_change", job.pk) + page
    crumb = f'href="{address("job_changelist")}?state=failed&amp;p=2"'
    assert crumb in operator.get(response.url).content.decode()


def test_the_filters_of_the_list_survive_an_action(operator):
    job = new_job(state="failed")
    response = act(operator, "job", "requeue_selected", [job.pk], query="?state=failed&queue=default")
    assert response.status_code == 302
    assert response.url.endswith("?state=failed&queue=default")


def test_requeueing_twice_is_told_truly(operator):
    job = new_job(state="failed")
    operator.post(address("job_requeue", job.pk))
    response = operator.post(address("job_requeue", job.pk))
    assert told(response)[-1] == "Requeued 0. Left alone 1: 1 already pending."
    assert entries_of(job) == ["Requeued."]


# What is said


def test_requeue_of_a_mixed_selection_tells_each_count(operator):
    ended = [new_job(state=state) for state in ("failed", "success", "canceled")]
    running, pending = new_job(state="in_progress"), new_job()
    pruned = new_job()
    Job.objects.filter(pk=pruned.pk).delete()
    keys = [job.pk for job in (*ended, running, pending, pruned)]
    response = act(operator, "job", "requeue_selected", keys)
    assert told(response) == ["Requeued 3. Left alone 3: 1 already pending, 1 already running, 1 no longer there."]
    assert state_of(running) == ("in_progress", False)
    assert [entries_of(job) for job in ended] == [["Requeued."]] * 3
    assert LogEntry.objects.count() == 3


def test_cancel_of_a_mixed_selection_tells_each_count(operator):
    jobs = [new_job(), new_job(state="in_progress"), new_job(state="failed"), new_job(state="success")]
    response = act(operator, "job", "cancel_selected", [job.pk for job in jobs])
    assert told(response) == [
        "Canceled 1. Asked 1 running job to stop. Left alone 2: 1 already ended (failed), 1 already ended (success)."
    ]
    assert LogEntry.objects.count() == 2


def test_a_key_that_another_job_took_is_told(operator):
    older = new_job(state="failed", idempotency_key="k", unique_until="terminal")
    new_job(idempotency_key="k", key_digest=digest("k"))
    response = operator.post(address("job_requeue", older.pk))
    assert told(response) == ["Requeued 0. Left alone 1: 1 with a key that another job has taken."]


def digest(key: str) -> str:
    from django_helisched.jobs.keys import digest_of

    return digest_of("", key)


def test_ticked_rows_count_even_where_they_left_the_filter_meanwhile(operator):
    job, gone = new_job(state="failed"), new_job(state="in_progress")
    response = act(operator, "job", "requeue_selected", [job.pk, gone.pk], query="?state=failed")
    assert told(response) == ["Requeued 1. Left alone 1: 1 already running."]


def test_a_row_ticked_twice_is_done_once(operator):
    job = new_job(state="failed")
    assert told(act(operator, "job", "requeue_selected", [job.pk, job.pk])) == ["Requeued 1."]


@pytest.mark.parametrize("key", ["garbage", "\x00", "1 OR 1=1"])
def test_a_selection_that_is_no_key_is_refused(operator, key):
    job = new_job(state="failed")
    assert act(operator, "job", "requeue_selected", [job.pk, key]).status_code == 400
    assert state_of(job) == ("failed", False)


def test_all_that_match_means_the_filter_and_no_more(operator):
    matching = [new_job(state="failed") for _ in range(3)]
    other = new_job(state="success")
    response = act(operator, "job", "requeue_selected", [matching[0].pk], query="?state=failed", select_across="1")
    assert told(response) == ["Requeued 3."]
    assert state_of(other) == ("success", False)


class CautiousJobAdmin(JobAdmin):
    selection_limit = 2


def test_all_that_match_is_bounded_and_says_so(rf, admin_user):
    jobs = [new_job(state="failed") for _ in range(3)]
    data = {"action": "requeue_selected", "_selected_action": [str(jobs[0].pk)], "select_across": "1", "index": "0"}
    request = rf.post(address("job_changelist"), data)
    request.user, request.session = admin_user, {}
    request._messages = FallbackStorage(request)
    request._dont_enforce_csrf_checks = True
    CautiousJobAdmin(Job, admin.site).changelist_view(request)
    said = [str(message) for message in request._messages]
    assert said == ["Requeued 2. Only the first 2 matching rows were looked at; repeat for the rest."]
    assert Job.objects.filter(state="pending").count() == 2


class TroubledStore:
    """The real store, with some jobs that cannot be canceled."""

    def __init__(self, errors: dict[UUID, Exception]) -> None:
        self._real = wiring.job_store()
        self._errors = errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def cancel(self, job_id: UUID, *, force: bool = False) -> bool:
        if job_id in self._errors:
            raise self._errors[job_id]
        return self._real.cancel(job_id, force=force)


def test_a_busy_row_and_a_failing_row_are_counted_apart_and_harm_no_other(operator, caplog):
    fine, busy, failing = new_job(), new_job(), new_job()
    store: Any = TroubledStore({busy.pk: Busy("held"), failing.pk: RuntimeError("no words for it")})
    with wiring.replaced(jobs=store):
        response = act(operator, "job", "cancel_selected", [busy.pk, failing.pk, fine.pk])
    (said,) = told(response)
    assert said.startswith("Canceled 1. Busy 1: another transaction held the row; try again. Failed 1:")
    assert state_of(fine) == ("canceled", False)
    assert entries_of(busy) == entries_of(failing) == []
    assert "no words for it" in caplog.text


def test_too_many_busy_rows_end_the_try(operator):
    jobs = [new_job() for _ in range(MAX_BUSY + 3)]
    store: Any = TroubledStore({job.pk: Busy("held") for job in jobs[:MAX_BUSY]})
    with wiring.replaced(jobs=store):
        (said,) = told(act(operator, "job", "cancel_selected", [job.pk for job in jobs]))
    assert said.startswith(f"Canceled 0. Busy {MAX_BUSY}:")
    assert said.endswith("Not tried 3: too many rows were busy.")
    assert not Job.objects.exclude(state="pending").exists()


def test_the_log_names_the_user(client_of):
    job = new_job(state="failed")
    client_of("view_job", "requeue_job").post(address("job_requeue", job.pk))
    entry = LogEntry.objects.get()
    assert entry.user == User.objects.get()
    assert entry.is_change()
    assert str(job.pk) in entry.object_repr


@pytest.mark.parametrize("operation", JOB_OPERATIONS)
def test_an_operation_on_a_job_that_is_gone_leads_to_the_list(operator, operation):
    job = new_job()
    url = address(f"job_{operation}", job.pk)
    Job.objects.all().delete()
    for response in (operator.get(url), operator.post(url)):
        assert response.url == address("job_changelist")
