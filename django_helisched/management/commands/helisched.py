"""helisched: arguments and exit codes; the answers are made in django_helisched.inspection."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from django_helisched import conf, wiring
from django_helisched.crons.refusals import InvalidSchedule
from django_helisched.driver.booting import migrated
from django_helisched.exceptions import HelischedError
from django_helisched.inspection import crons, queues
from django_helisched.inspection.bench import bench
from django_helisched.inspection.health import Bounds, health
from django_helisched.inspection.pruning import prune
from django_helisched.inspection.why import why
from django_helisched.management.arguments import duration, instant, this_person
from django_helisched.management.progress_bar import ProgressBar

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction
    from collections.abc import Callable

    from django_helisched.inspection import Answer

EXIT_CODES = (
    "Exit codes: 0 answered, done, or healthy; 1 it cannot be answered or done, one sentence says why, or unhealthy; "
    "2 unknown option."
)


class Command(BaseCommand):
    """Ask what is stored, what will happen and whether all is well; pause and resume queues; delete old rows."""

    help = (
        "Ask what is stored, what will happen and whether all is well. pause, resume and prune alone change "
        f"something; bench stores rows of its own, and deletes them. {EXIT_CODES}"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the subjects and their questions."""
        subjects = parser.add_subparsers(metavar="SUBJECT", required=True)
        _add_crons(subjects.add_parser("crons", help="When crons fire."))
        _add_why(subjects)
        _add_queues(subjects)
        _add_health(subjects)
        _add_prune(subjects)
        _add_bench(subjects)

    def handle(self, **options: Any) -> None:
        """Print the answer, as JSON where asked."""
        try:
            with migrated(conf.get_settings().database):
                answer: Answer = options["ask"](options)
        except InvalidSchedule as error:
            raise CommandError(f"{error}\n{error.pointer}".rstrip()) from error
        except (HelischedError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        except Error as error:
            raise CommandError(f"The database failed: {error}") from error
        as_json = options["json"]
        self.stdout.write(json.dumps(answer.data, indent=2, ensure_ascii=False) if as_json else "\n".join(answer.lines))
        if not answer.ok:
            sys.exit(1)


def _add_crons(parser: ArgumentParser) -> None:
    questions = parser.add_subparsers(metavar="QUESTION", required=True)
    following = _question(questions, "next", "When one cron fires next, with notes on daylight saving.", _next)
    following.add_argument("name")
    following.add_argument("--space", default="", help='The space of the cron. Default: "".')
    following.add_argument("--count", type=int, default=10, metavar="N", help="How many fires. Default: 10.")
    listed = _question(questions, "list", "All crons that are stored.", _list)
    listed.add_argument("--space", help="Those of one space only.")
    listed.add_argument("--archived", action="store_true", help="The archived ones, too.")
    explained = _question(questions, "explain", "What a cron expression selects, and when it fires.", _explain)
    explained.add_argument("expr", help='A cron expression, quoted: "0 9 * * mon-fri".')
    explained.add_argument("--tz", metavar="ZONE", help='The zone. Default: HELISCHED["TZ"].')
    explained.add_argument("--count", type=int, default=5, metavar="N", help="How many fires. Default: 5.")


def _add_why(subjects: _SubParsersAction[Any]) -> None:
    asked = _question(subjects, "why", "Why a job does not run, who runs it, or how it ended.", _why)
    asked.add_argument("job", help="Its id, or as much of its beginning or end as no other job has.")


def _add_queues(subjects: _SubParsersAction[Any]) -> None:
    _question(subjects, "queues", "What waits and runs in each queue, and which are paused.", _queues)
    pause = _question(subjects, "pause", "Start no job of a queue until it is resumed.", _pause)
    pause.add_argument("queue")
    pause.add_argument("--reason", default="", help="Why; shown wherever the queue is.")
    pause.add_argument("--until", type=instant, metavar="WHEN", help="Resume by itself then: 2026-12-01T08:00, or 2h.")
    pause.add_argument("--by", metavar="NAME", help="Who. Default: your user name and this host.")
    resume = _question(subjects, "resume", "Start the jobs of a paused queue again.", _resume)
    resume.add_argument("queue")


def _add_health(subjects: _SubParsersAction[Any]) -> None:
    asked = _question(subjects, "health", "Whether schedulers run and nothing waits for too long.", _health)
    bounds = (
        ("--max-age", None, "Oldest last report of a live scheduler. Default: LEASE."),
        ("--max-wait", timedelta(minutes=10), "Longest wait of a due job. Default: 10m."),
        ("--max-late", timedelta(minutes=2), "Longest lateness of a cron. Default: 2m."),
        ("--timeout", timedelta(seconds=10), "Longest wait for the database. Default: 10s."),
    )
    for name, default, text in bounds:
        asked.add_argument(name, type=duration, default=default, metavar="TIME", help=text)


def _add_prune(subjects: _SubParsersAction[Any]) -> None:
    asked = _question(subjects, "prune", "Delete old rows now, by RETENTION, as idle schedulers do.", _prune)
    asked.add_argument("--dry-run", action="store_true", help="Count what would go, and delete nothing.")


def _add_bench(subjects: _SubParsersAction[Any]) -> None:
    asked = _question(subjects, "bench", "How fast one process is on this database, and what limits it.", _bench)
    asked.add_argument("--jobs", type=int, default=1000, metavar="N", help="Jobs of each figure. Default: 1000.")


def _question(
    questions: _SubParsersAction[Any], name: str, help_text: str, ask: Callable[[dict[str, Any]], Answer]
) -> ArgumentParser:
    parser: ArgumentParser = questions.add_parser(name, help=help_text)
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    parser.set_defaults(ask=ask)
    return parser


def _bench(options: dict[str, Any]) -> Answer:
    return bench(jobs=options["jobs"])


def _next(options: dict[str, Any]) -> Answer:
    return crons.next_fires(options["name"], space=options["space"], count=options["count"])


def _list(options: dict[str, Any]) -> Answer:
    return crons.listing(space=options["space"], archived=options["archived"])


def _explain(options: dict[str, Any]) -> Answer:
    return crons.explanation(options["expr"], tz=options["tz"], count=options["count"])


def _why(options: dict[str, Any]) -> Answer:
    return why(options["job"])


def _queues(options: dict[str, Any]) -> Answer:
    del options
    return queues.listing()


def _pause(options: dict[str, Any]) -> Answer:
    by = this_person() if options["by"] is None else options["by"]
    until = options["until"]
    if isinstance(until, timedelta):
        until = wiring.job_store().now() + until
    return queues.pause(options["queue"], by=by, reason=options["reason"], until=until)


def _resume(options: dict[str, Any]) -> Answer:
    return queues.resume(options["queue"])


def _health(options: dict[str, Any]) -> Answer:
    wait, late, answer = options["max_wait"], options["max_late"], options["timeout"]
    return health(Bounds(age=options["max_age"], wait=wait, late=late, answer=answer))


def _prune(options: dict[str, Any]) -> Answer:
    bar = ProgressBar(sys.stderr)
    try:
        return prune(
            dry_run=options["dry_run"], watch=lambda step, rows: bar.show(step.kind, step.share, f"{rows} rows")
        )
    finally:
        bar.clear()
