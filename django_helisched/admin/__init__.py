"""The admin site's pages: jobs, crons, workers and queues. Django's autodiscover finds them here.

No row is written by these pages themselves; every change is a verb of ``scheduler`` or
of the store, asked for by POST and written to the admin's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import apps

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite

__all__ = ["register"]


def register(site: AdminSite) -> None:
    """Put the pages on ``site``; the default site has them already."""
    from django_helisched import models  # here: the admin's own models must be installed first
    from django_helisched.admin.crons import CronAdmin
    from django_helisched.admin.jobs import JobAdmin
    from django_helisched.admin.queues import QueueAdmin
    from django_helisched.admin.workers import WorkerAdmin

    site.register(models.Job, JobAdmin)
    site.register(models.Cron, CronAdmin)
    site.register(models.Queue, QueueAdmin)
    site.register(models.Worker, WorkerAdmin)


if apps.is_installed("django.contrib.admin"):
    from django.contrib import admin

    register(admin.site)
