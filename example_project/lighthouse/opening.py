"""What the first day needs: a row for every tower, the weather, and something to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from lighthouse.clock import utc_now
from lighthouse.models import Storm, Tower
from lighthouse.towers import SITES

if TYPE_CHECKING:
    from django.apps import AppConfig


def open_towers(sender: AppConfig, *, using: str, **_: object) -> None:
    """Make the rows that are missing; leave those that exist as they are."""
    now = utc_now()
    towers = [Tower(slug=site.slug, lamp_lit=site.is_dark(now), lamp_since=now) for site in SITES]
    Tower.objects.using(using).bulk_create(towers, ignore_conflicts=True)
    storm = Storm(id=1, level=int(settings.LIGHTHOUSE_STORM))
    Storm.objects.using(using).bulk_create([storm], ignore_conflicts=True)


def first_light() -> int:
    """Enqueue what would else wait for noon and breakfast, all or nothing, and say how many jobs."""
    from lighthouse import jobs

    with transaction.atomic():
        for site in SITES:
            jobs.plan_lamps.using(name=f"first plan at {site.name}").enqueue(site.slug)
            jobs.draw_postcard.using(name=f"first postcard of {site.name}").enqueue(site.slug)
        jobs.night_watch.enqueue()
        jobs.draw_sea.enqueue()
    return 2 * len(SITES) + 2
