"""The app: found functions and crons, registered checks. Starts no thread and asks no database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig, apps
from django.core.checks import register
from django.utils.module_loading import autodiscover_modules, module_has_submodule
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.core.checks import CheckMessage


class HelischedConfig(AppConfig):
    """Register the functions of every installed app's ``jobs`` and ``tasks``, and its ``crons``."""

    name = "django_helisched"
    label = "helisched"
    verbose_name = _("Jobs and crons")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the modules that register functions and declare crons.

        Every process of the project waits for this: what only an enqueue or a check needs is imported by those.
        """
        register(_check, "helisched")
        autodiscover_modules("jobs", "tasks")
        if any(
            app.module and module_has_submodule(app.module, "crons")
            for app in apps.get_app_configs()
            if app is not self
        ):
            from django_helisched.scheduler.declarations import import_declarations

            import_declarations()


def _check(**options: Any) -> list[CheckMessage]:
    from django_helisched.checks import CHECKS

    return [message for check in CHECKS for message in check(**options)]
