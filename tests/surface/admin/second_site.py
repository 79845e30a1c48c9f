"""A project with an admin site of its own beside the default one."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from django_helisched.admin import register

backstage = admin.AdminSite(name="backstage")
register(backstage)

urlpatterns = [path("admin/", admin.site.urls), path("backstage/", backstage.urls)]
