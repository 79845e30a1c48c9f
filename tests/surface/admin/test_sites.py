"""Where the pages are: on the default site, on a project's own, and on the pinned database."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin

from django_helisched.inspection.rows import rows_of
from django_helisched.models import Cron, Job, Queue, Worker
from tests.surface.admin.pages import address
from tests.surface.admin.rows import new_cron, new_fire, new_job, now

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [Job, Cron, Queue, Worker])
def test_the_default_site_has_the_pages_without_being_asked(model):
    assert admin.site.is_registered(model)


@pytest.mark.urls("tests.surface.admin.second_site")
def test_a_site_of_the_project_links_to_itself(operator):
    parent = new_job(cron=new_cron(), trigger="cron")
    job = new_job(parent=parent, state="failed")
    cron = new_cron("other")
    new_fire(cron, now(), job_id=job.pk)
    for view in (
        "job/",
        f"job/{job.pk}/change/",
        f"job/{job.pk}/requeue/",
        "cron/",
        f"cron/{cron.pk}/change/",
        "queue/",
    ):
        page = operator.get(f"/backstage/helisched/{view}")
        assert page.status_code == 200
        assert not re.findall(r'href="/admin/helisched[^"]*"', page.content.decode()), view
    response = operator.post(f"/backstage/helisched/job/{job.pk}/requeue/")
    assert response.url == f"/backstage/helisched/job/{job.pk}/change/"


def test_the_app_index_lists_the_pages_and_adds_crons_alone(operator):
    page = operator.get("/admin/helisched/").content.decode()
    for model in ("job", "cron", "queue", "worker"):
        assert address(f"{model}_changelist") in page
        assert (address(f"{model}_add") in page) == (model == "cron")


@pytest.mark.parametrize("model", [Job, Cron, Queue, Worker])
def test_every_list_reads_the_pinned_database(rf, settings, model):
    settings.HELISCHED = {"DATABASE": "elsewhere"}
    page = admin.site.get_model_admin(model)
    assert page.get_queryset(rf.get("/")).db == "elsewhere"
    assert rows_of(model).db == "elsewhere"
