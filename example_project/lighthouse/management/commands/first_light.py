from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from lighthouse.opening import first_light


class Command(BaseCommand):
    """Fill the page at once."""

    help = "Enqueue a plan and a postcard for every tower, a night watch and a sea."

    def handle(self, *args: Any, **options: Any) -> None:
        """Enqueue, and say how much."""
        self.stdout.write(f"{first_light()} jobs enqueued; manage.py runscheduler runs them.")
