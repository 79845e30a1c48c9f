"""runscheduler: arguments and exit codes; the work is done in django_helisched.driver."""

from __future__ import annotations

import json
import sys
from argparse import SUPPRESS
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from django_helisched.driver import console
from django_helisched.driver.banner import banner
from django_helisched.driver.config import WORKER_ID_LENGTH, configured, new_worker_id
from django_helisched.driver.events import DriverEvent, What, log_event
from django_helisched.driver.once import Tally, run_once
from django_helisched.driver.opening import open_driver
from django_helisched.driver.orders import Link, run_supervised
from django_helisched.driver.pulse import NOWHERE, Shown, showing
from django_helisched.driver.reloading import run_reloading
from django_helisched.driver.signals import leave_if_worn_out, run_signaled
from django_helisched.driver.supervising import supervise
from django_helisched.exceptions import HelischedError
from django_helisched.stores.base import QueueFilter

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.driver import Driver
    from django_helisched.driver.events import Observer
    from django_helisched.driver.pulse import Sink

EXIT_CODES = (
    "Exit codes: 0 stopped, and everything that ran has finished; 1 the configuration is wrong, or with --once the "
    "database failed: one sentence says what, or with --processes one died while it finished; 2 unknown option; "
    "75 bodies that did not stop occupy its threads: start it again; 130 or 143 ended at once by a second Ctrl-C or "
    "SIGTERM: what ran is taken back when its lease lapses."
)
# A prefix leaves room for the token that tells one start from the next.
_PREFIX_LENGTH = WORKER_ID_LENGTH - 28
_DAY = 86_400.0


class Command(BaseCommand):
    """Run jobs and fire crons until stopped. Start as many of these processes as you like."""

    help = f"Run jobs and fire crons until stopped. Start as many as you like, on any host. {EXIT_CODES}"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options; their spelling is django-tasks-db's where it has one."""
        parser.add_argument(
            "--queue-name",
            action="append",
            metavar="NAMES",
            help='Queues to serve: a comma-separated list, may be given more than once; "mail*" names all that begin '
            "so. Default: all.",
        )
        parser.add_argument("--exclude-queues", action="append", metavar="NAMES", help="Queues not to serve.")
        parser.add_argument("--threads", type=int, metavar="N", help="Plain functions at once.")
        parser.add_argument(
            "--async-jobs",
            type=int,
            metavar="M",
            help="Async functions at once, on one event loop; 0: threads run them. Both 0: fire crons, run no job.",
        )
        parser.add_argument(
            "--processes",
            type=int,
            metavar="N",
            help="Start so many processes, and start those anew that end; SIGHUP replaces them one by one.",
        )
        parser.add_argument("--interval", type=float, metavar="SECONDS", help="Longest wait between two looks.")
        parser.add_argument(
            "--max-tasks",
            type=int,
            metavar="N",
            help="Start so many jobs, finish them, and stop; with --processes a fresh process takes its place.",
        )
        parser.add_argument("--worker-id", metavar="NAME", help="Begin the id of this worker so, not with host:pid.")
        parser.add_argument("--no-crons", action="store_true", help="Run jobs only: fire and reconcile no cron.")
        parser.add_argument(
            "--once",
            "--batch",
            action="store_true",
            dest="once",
            help="Fire and run what is due now, print a summary as JSON, and stop.",
        )
        parser.add_argument(
            "--reload", action="store_true", default=False, help="Start again when code changes, in development."
        )
        parser.add_argument("--no-reload", action="store_false", dest="reload", help="Do not (the default).")
        parser.add_argument("--health-port", type=int, metavar="PORT", help="Answer GET /live and /ready there.")
        parser.add_argument(
            "--health-host", default="127.0.0.1", metavar="HOST", help="On this address only (default)."
        )
        parser.add_argument("--health-file", type=Path, metavar="PATH", help="Write this file while all is well.")
        parser.add_argument("--child", help=SUPPRESS)
        parser.add_argument("--json-logs", action="store_true", help="Write one JSON object for each event.")

    def handle(self, **options: Any) -> None:
        """Run the driver and exit as EXIT_CODES says."""
        try:
            link = None if options["child"] is None else Link(options["child"])
            self._handle(configured(**_choices(options, link)), options, link)
        except (HelischedError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        except Error as error:
            raise CommandError(f"The database failed: {error}") from error

    def _handle(self, config: DriverConfig, options: dict[str, Any], link: Link | None) -> None:
        # With --once the standard output is the summary's alone, below what the jobs themselves print.
        stream = self.stderr if options["once"] else self.stdout
        stream.style_func = None
        number = None if link is None else link.number
        as_json, verbosity = options["json_logs"], options["verbosity"]
        with console.shown(stream, as_json=as_json, verbosity=verbosity, process=number):
            if link is not None:
                driver = open_driver(config)
                run_supervised(driver, link, partial(_run, more=[link]))
            elif options["processes"] is not None:
                self._supervise(config, options)
            elif options["once"]:
                self._run_once(config, options)
            else:
                self._run(config, options)

    def _run(self, config: DriverConfig, options: dict[str, Any]) -> None:
        run = partial(_run, where=_shown(options))
        if options["reload"]:
            run_reloading(partial(self._begin, config, options), run)
        else:
            run_signaled(self._begin(config, options), run)

    def _supervise(self, config: DriverConfig, options: dict[str, Any]) -> None:
        self._greet(config, options)
        code = supervise(options["processes"], config, _shown(options))
        if code:
            sys.exit(code)

    def _run_once(self, config: DriverConfig, options: dict[str, Any]) -> None:
        tally = Tally()
        run_signaled(self._begin(config, options, tally), run_once)
        self.stdout.write(json.dumps({"worker": config.worker_id, **tally.summary()}))

    def _begin(self, config: DriverConfig, options: dict[str, Any], observe: Observer = log_event) -> Driver:
        driver = open_driver(config, observe)
        self._greet(config, options)
        return driver

    def _greet(self, config: DriverConfig, options: dict[str, Any]) -> None:
        stream = self.stderr if options["once"] else self.stdout
        separator = "|" if console.is_ascii(stream) else "·"
        lines = banner(config, separator=separator, processes=options["processes"])
        if options["json_logs"]:
            log_event(DriverEvent(what=What.DRIVER_READY, text="; ".join(line.strip() for line in lines)))
        elif options["verbosity"]:
            stream.write("\n".join(lines))


def _run(driver: Driver, where: Shown = NOWHERE, more: Sequence[Sink] = ()) -> None:
    with showing(driver.status, where, more):
        driver.run()
    leave_if_worn_out(driver)


def _shown(options: dict[str, Any]) -> Shown:
    port = options["health_port"]
    if port is not None and not 0 <= port <= 65_535:
        raise ImproperlyConfigured(f"--health-port {port} must be from 0 to 65535.")
    return Shown(port=port, host=options["health_host"], file=options["health_file"])


def _choices(options: dict[str, Any], link: Link | None) -> dict[str, Any]:
    """Return what the options say of the config; raise ImproperlyConfigured for a value out of its range."""
    _number(options["processes"], "--processes", least=1)
    for other in ("once", "reload"):
        if options["processes"] is not None and options[other] and link is None:
            raise ImproperlyConfigured(
                f"--processes does not go with --{other}, which is for one process; leave one out."
            )
    return {
        "queues": QueueFilter(include=_names(options["queue_name"]), exclude=_names(options["exclude_queues"])),
        "threads": _number(options["threads"], "--threads", least=0),
        "async_jobs": _number(options["async_jobs"], "--async-jobs", least=0),
        "max_tasks": _number(options["max_tasks"], "--max-tasks", least=1),
        "interval": _interval(options["interval"]),
        "worker_id": None if options["worker_id"] is None else new_worker_id(_prefix(options["worker_id"], link)),
        "fire_crons": not options["no_crons"],
    }


def _names(given: list[str] | None) -> tuple[str, ...]:
    names = tuple(name.strip() for text in given or () for name in text.split(",") if name.strip())
    for name in names:
        if "*" in name[:-1]:
            raise ImproperlyConfigured(
                f'The queue pattern "{name}" has a * before its end; only "mail*" is understood.'
            )
    return names


def _number(given: int | None, option: str, *, least: int) -> int | None:
    if given is not None and given < least:
        raise ImproperlyConfigured(f"{option} {given} must be {least} or more.")
    return given


def _interval(given: float | None) -> timedelta | None:
    if given is None:
        return None
    if not 0 < given <= _DAY:
        raise ImproperlyConfigured(f"--interval {given:g} must be more than zero seconds, and a day at most.")
    return timedelta(seconds=given)


def _prefix(given: str, link: Link | None) -> str:
    if not given.isprintable() or not given.strip() or len(given) > _PREFIX_LENGTH:
        raise ImproperlyConfigured(
            f"--worker-id {given!r} must be 1 to {_PREFIX_LENGTH} printable characters; a token is put after it."
        )
    return given.strip() if link is None else f"{given.strip()}-{link.number}"
