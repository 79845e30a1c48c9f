"""The app: found functions and crons, registered checks. Starts no thread and asks no database."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class HelischedConfig(AppConfig):
    """Register the functions of every installed app's ``jobs`` and ``tasks``, and its ``crons``."""

    name = "django_helisched"
    label = "helisched"
    verbose_name = _("Jobs and crons")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the modules that register functions and declare crons."""
        from django_helisched import checks  # noqa: F401  # importing registers the checks
        from django_helisched.scheduler.declarations import import_declarations

        autodiscover_modules("jobs", "tasks")
        import_declarations()
