from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class LighthouseConfig(AppConfig):
    """The example: sixteen towers, their keepers and their weather."""

    name = "lighthouse"
    verbose_name = "The Lighthouse Keeper"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Keep the tower rows equal to ``towers.py`` after each migrate."""
        from lighthouse.opening import open_towers

        post_migrate.connect(open_towers, sender=self)
