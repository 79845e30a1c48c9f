"""Three crons of a second each, one for every policy."""

from datetime import timedelta

from django_helisched import cron_jobs
from tests.chaos.jobs import tick

crons = cron_jobs()
crons.cron("once", "* * * * * *", tick, {"name": "once"}, catch_up="fire_once")
crons.cron("skip", "* * * * * *", tick, {"name": "skip"}, catch_up="skip")
crons.interval("all", timedelta(seconds=1), tick, {"name": "all"}, catch_up="fire_all")
