"""Answer the cases of dst.py with one library: run by the interpreter of an environment that has it.

    python dst_peers.py NAME < cases.json > answers.json

Each library is asked in the way its own documentation shows, with the zone of the
case. An error is the answer, too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

Fires = Iterator[datetime]
LONGEST = timedelta(days=70)  # a case that has had no answer by then has none
BEAT = 300.0  # seconds beat sleeps at most


def croniter(expr: str, zone: ZoneInfo, start: datetime) -> Fires:
    """Feed each result back, as a scheduler does that stores the next run."""
    from croniter import croniter

    at = start.astimezone(zone)
    while True:
        at = croniter(expr, at).get_next(datetime)
        yield at


def apscheduler(expr: str, zone: ZoneInfo, start: datetime) -> Fires:
    """Write weekdays by name: as numbers they count from Monday there, which is no matter of clocks."""
    from apscheduler.triggers.cron import CronTrigger

    minute, hour, day, month, weekday = expr.split()
    named = re.sub(r"[0-7]", lambda number: WEEKDAYS[int(number[0])], weekday)
    trigger = CronTrigger.from_crontab(" ".join([minute, hour, day, month, named]), timezone=zone)
    at = trigger.get_next_fire_time(None, (start + timedelta(microseconds=1)).astimezone(zone))
    while at is not None:
        yield at
        at = trigger.get_next_fire_time(at, at)


def celery(expr: str, zone: ZoneInfo, start: datetime) -> Fires:
    """Ask as often as beat does, and remember when it ran."""
    from celery import Celery
    from celery.schedules import crontab

    app = Celery("cases", set_as_current=False)
    app.conf.timezone = str(zone)
    now = last = start
    minute, hour, day, month, weekday = expr.split()
    schedule = crontab(
        minute=minute,
        hour=hour,
        day_of_month=day,
        month_of_year=month,
        day_of_week=weekday,
        nowfun=lambda: now.astimezone(zone),
        app=app,
    )
    while now < start + LONGEST:
        is_due, seconds = schedule.is_due(last.astimezone(zone))
        if is_due:
            last = now
            yield now
        now += timedelta(seconds=max(1.0, min(seconds, BEAT)))


def cronsim(expr: str, zone: ZoneInfo, start: datetime) -> Fires:
    from cronsim import CronSim

    yield from CronSim(expr, start.astimezone(zone))


WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
PEERS: dict[str, Callable[[str, ZoneInfo, datetime], Fires]] = {
    "croniter": croniter,
    "apscheduler": apscheduler,
    "celery": celery,
    "cronsim": cronsim,
}


def answer(fires: Callable[[str, ZoneInfo, datetime], Fires], case: dict[str, Any]) -> list[str] | str:
    """Return the first fires of a case in UTC, or the error."""
    start = datetime.fromisoformat(case["start_utc"])
    try:
        found = list(islice(fires(case["expr"], ZoneInfo(case["tz"]), start), len(case["next_utc"])))
        return [f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for at in found]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.stdout.write(json.dumps([answer(PEERS[sys.argv[1]], case) for case in json.load(sys.stdin)]))
