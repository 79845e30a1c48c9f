"""When the keepers work. Each tower lives by its own clock; the round-the-clock duties by UTC."""

from __future__ import annotations

from datetime import timedelta

from django_helisched import cron_jobs
from lighthouse import jobs
from lighthouse.towers import SITES

crons = cron_jobs()

for site in SITES:
    # A postcard at breakfast. Yesterday's breakfast is not worth drawing today.
    crons.cron(
        f"postcard-{site.slug}",
        "30 7 * * *",
        jobs.draw_postcard,
        {"tower": site.slug},
        tz=site.zone,
        catch_up="skip",
    )
    # At noon the next sunset and the next sunrise are certain; one plan makes up for any missed.
    crons.cron(f"plan-{site.slug}", "0 12 * * *", jobs.plan_lamps, {"tower": site.slug}, tz=site.zone)
    crons.interval(
        f"beam-{site.slug}",
        timedelta(seconds=site.beam_seconds),
        jobs.sweep_beam,
        {"tower": site.slug},
        catch_up="skip",
    )

crons.interval("watch-reading", timedelta(seconds=2), jobs.read_next_tower, catch_up="skip")
crons.interval("postcard-round", timedelta(seconds=4), jobs.draw_next_postcard, catch_up="skip")
crons.interval("fog-check", timedelta(seconds=5), jobs.check_fog, catch_up="skip")
crons.interval("night-watch", timedelta(seconds=20), jobs.night_watch, catch_up="skip", overlap="skip")
crons.interval("sea-chart", timedelta(seconds=25), jobs.draw_sea, catch_up="skip", overlap="cancel_previous")
crons.hourly("tidy-log", minute_utc=7, fn=jobs.tidy_log)
