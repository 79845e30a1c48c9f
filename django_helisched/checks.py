"""System checks: what is wrong with the configuration, and what to type. None asks a database."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, router

from django_helisched import conf, models
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.crons.spec import CronSpec, notices, pace_notices, parse_spec
from django_helisched.crons.wall_clock import zone
from django_helisched.exceptions import HelischedError, UnknownFunction
from django_helisched.scheduler.checking import check_function
from django_helisched.scheduler.declarations import find_declarations, refused_declarations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_helisched.crons.cron import CronDeclaration

SQLITE_OPTIONS = """"OPTIONS": {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}"""

REPORTS = 10  # leases, in each of which a process reports three times

# Above READ COMMITTED a claim would fail with serialization errors instead of skipping what others hold.
_TOO_STRICT = {"repeatable read", "serializable", "repeatable_read"}
_PSYCOPG_LEVELS = {2: "repeatable read", 3: "serializable"}


def check_configuration(**_: Any) -> list[CheckMessage]:
    """Return what keeps the app from working with these settings."""
    try:
        alias = conf.get_settings().database
    except ImproperlyConfigured as error:
        return [Error(str(error), id="helisched.E001")]
    if alias not in settings.DATABASES:
        known = ", ".join(sorted(settings.DATABASES))
        return [
            Error(
                f'HELISCHED["DATABASE"] names "{alias}", which DATABASES does not have.',
                hint=f"Use one of: {known}.",
                id="helisched.E002",
            )
        ]
    return [
        *_alias(alias),
        *_time_zones(),
        *_retention(conf.get_settings()),
        *_isolation(alias),
        *_routers(alias),
        *_sqlite(alias),
    ]


def check_crons(**_: Any) -> list[CheckMessage]:
    """Return what is wrong with the crons that code declares, each with its file and line."""
    refused = [_refused(error, "E011") for error in refused_declarations()]
    try:
        declared = None if refused else find_declarations()
    except ImproperlyConfigured as error:
        # A setting that cannot be read is told by check_configuration.
        return [Error(str(error), id="helisched.E010")] if "CRONS" in str(error) else []
    except HelischedError as error:
        return [_refused(error, "E012")]
    entries = () if declared is None else declared.entries()
    return [*_zone(), *refused, *(message for entry in entries for message in [*_function(entry), *_expression(entry)])]


def _zone() -> Iterator[CheckMessage]:
    try:
        zone(conf.get_settings().tz)
    except InvalidSchedule as error:
        yield Error(f'HELISCHED["TZ"]: {error}', hint='Name a zone like "Europe/Paris".', id="helisched.E014")


def _refused(error: HelischedError, number: str) -> CheckMessage:
    return Error(
        str(error), hint="No scheduler starts until this is mended; web processes go on.", id=f"helisched.{number}"
    )


def _function(entry: CronDeclaration) -> Iterator[CheckMessage]:
    try:
        check_function(entry, consequence="")
    except UnknownFunction as error:
        yield CheckWarning(
            str(error), hint="Its jobs wait until some process knows the function, a day at most.", id="helisched.W011"
        )
    except HelischedError as error:
        yield Error(str(error), hint="Every job of it would fail.", id="helisched.E013")


def _expression(entry: CronDeclaration) -> Iterator[CheckMessage]:
    schedule = parse_spec(entry.spec)
    if not isinstance(schedule, CronSpec):
        return
    place = f'The cron "{entry.name}" at {entry.origin} ("{schedule.expression.text}"): '
    pace = pace_notices(schedule.expression)
    for text in notices(schedule.expression):
        if text in pace:
            yield CheckWarning(place + text, hint="Write five fields for once a minute.", id="helisched.W010")
        else:
            yield Info(place + text, hint="Silence helisched.I010 if this is meant.", id="helisched.I010")


def _alias(alias: str) -> Iterator[CheckMessage]:
    if alias != DEFAULT_DB_ALIAS:
        yield CheckWarning(
            f'HELISCHED["DATABASE"] is "{alias}": jobs and your tables on "{DEFAULT_DB_ALIAS}" cannot commit together.',
            hint="Use the database of the tables that your jobs are about, unless no job needs that.",
            id="helisched.W003",
        )


def _time_zones() -> Iterator[CheckMessage]:
    try:
        zone(conf.get_settings().tz)
    except HelischedError as error:
        yield Error(f'HELISCHED["TZ"]: {error}', id="helisched.E006")
    if not settings.USE_TZ:
        yield Error(
            "USE_TZ is False, so instants would be stored without their time zone.",
            hint="Set USE_TZ = True.",
            id="helisched.E003",
        )


def _retention(given: conf.Settings) -> Iterator[CheckMessage]:
    kept = given.retention
    if kept.workers is not None and kept.workers < REPORTS * given.lease:
        yield Error(
            f'HELISCHED["RETENTION"]["workers"] is {kept.workers}, and LEASE is {given.lease}: rows of processes that '
            "live would be deleted between two of their reports.",
            hint=f"Keep them for {REPORTS} leases at least.",
            id="helisched.E007",
        )
    if _ends_before(kept.failed.age, kept.success.age):
        yield CheckWarning(
            f'HELISCHED["RETENTION"] keeps failed jobs for {kept.failed.age} and successes for longer: what went wrong '
            "is forgotten first.",
            hint='Give "failed" the longer age.',
            id="helisched.W004",
        )
    if _ends_before(kept.fires, timedelta(days=1)):
        yield CheckWarning(
            f'HELISCHED["RETENTION"]["fires"] is {kept.fires}: what a cron missed is forgotten within a day, and can '
            "not be backfilled afterwards.",
            hint="Keep them for some days.",
            id="helisched.W005",
        )


def _ends_before(age: timedelta | None, other: timedelta | None) -> bool:
    """Tell whether one age is over before another; None never is."""
    return age is not None and (other is None or age < other)


def _isolation(alias: str) -> Iterator[CheckMessage]:
    level = settings.DATABASES[alias].get("OPTIONS", {}).get("isolation_level")
    named = _PSYCOPG_LEVELS.get(level, str(level).lower()) if level is not None else ""
    if named in _TOO_STRICT:
        yield Error(
            f'The isolation level of DATABASES["{alias}"] is "{named}".',
            hint='Remove "isolation_level" from its OPTIONS, or set it to READ COMMITTED.',
            id="helisched.E004",
        )


def _routers(alias: str) -> Iterator[CheckMessage]:
    for verb, database in (("reads", router.db_for_read(models.Job)), ("writes", router.db_for_write(models.Job))):
        if settings.DATABASE_ROUTERS and database != alias:
            yield Error(
                f'DATABASE_ROUTERS send {verb} of jobs to "{database}", but HELISCHED["DATABASE"] is "{alias}".',
                hint=f'Let the router return "{alias}" for the app label "helisched".',
                id="helisched.E005",
            )


def _sqlite(alias: str) -> Iterator[CheckMessage]:
    if connections[alias].vendor != "sqlite":
        return
    given = settings.DATABASES[alias]
    if str(given.get("OPTIONS", {}).get("transaction_mode", "")).upper() not in {"IMMEDIATE", "EXCLUSIVE"}:
        yield CheckWarning(
            f'DATABASES["{alias}"] begins transactions DEFERRED, so that "database is locked" can reach your users.',
            hint=f"Add to DATABASES[{alias!r}]: {SQLITE_OPTIONS}",
            id="helisched.W001",
        )
    if ":memory:" in str(given.get("NAME")):
        yield CheckWarning(
            f'DATABASES["{alias}"] is in memory, which no second process can see.',
            hint="Name a file, or use a server database.",
            id="helisched.W002",
        )


CHECKS = (check_configuration, check_crons)
