"""Everything that a run has left behind: rows, lines of files, logs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django_helisched import wiring
from django_helisched.models import Attempt, Fire, Job, JobArgs
from tests.app.models import Ledger
from tests.chaos import jobs as bodies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from uuid import UUID

    from django_helisched.crons.cron import CronSnapshot


@dataclass(frozen=True)
class Evidence:
    """What the audit looks at."""

    jobs: dict[UUID, Job]
    kwargs: dict[UUID, dict[str, Any]]  # positional ones under "0", "1", ...
    fire_at: dict[UUID, str]  # of the jobs of crons
    attempts: dict[UUID, list[Attempt]]
    calls: dict[UUID, list[Job]]  # the on_complete jobs of each job
    marks: Counter[str]  # what mutations wrote
    lines: Counter[str]  # what actions appended
    crons: list[CronSnapshot]
    fires: dict[UUID, list[Fire]]
    events: Counter[str]  # of all logs
    errors: list[str]  # lines of logs that no event is the reason for
    outages: list[str]

    def of(self, *functions: Any) -> Iterable[Job]:
        """Return the jobs of some functions that the run itself enqueued."""
        paths = {function.path for function in functions}
        return [job for job in self.jobs.values() if job.fn_path in paths]

    def runs(self, job: Job, marks: Counter[str], prefix: str = "") -> dict[int, int]:
        """Return how many marks each attempt of the job has left."""
        numbers = range(1, job.attempt_count + 2)
        found = {number: marks[f"{prefix}{job.pk} {number}"] for number in numbers}
        return {number: count for number, count in found.items() if count}


def gather(directory: Path) -> Evidence:
    """Read it all."""
    jobs = {job.pk: job for job in Job.objects.all()}
    payloads: list[tuple[Any, ...]] = list(JobArgs.objects.values_list("job_id", "args", "kwargs", "meta"))
    kwargs = {job_id: _by_name(args, named) for job_id, args, named, _ in payloads}
    attempts: dict[UUID, list[Attempt]] = defaultdict(list)
    for attempt in Attempt.objects.order_by("job_id", "number"):
        attempts[attempt.job_id].append(attempt)
    calls: dict[UUID, list[Job]] = defaultdict(list)
    by_text = {str(job_id): job_id for job_id in jobs}
    for job in jobs.values():
        if job.fn_path == bodies.ended.path:
            calls[by_text[kwargs[job.pk]["job_id"]]].append(job)
    fires: dict[UUID, list[Fire]] = defaultdict(list)
    for fire in Fire.objects.all():
        fires[fire.cron_id].append(fire)
    events, errors, outages = read_logs(directory)
    lines = directory / bodies.LINES
    return Evidence(
        jobs=jobs,
        kwargs=kwargs,
        fire_at={job_id: meta["fire_at"] for job_id, _, _, meta in payloads if "fire_at" in meta},
        attempts=attempts,
        calls=calls,
        marks=Counter(Ledger.objects.values_list("marker", flat=True)),
        lines=Counter(lines.read_text().splitlines() if lines.exists() else ()),
        crons=list(wiring.cron_store().list(source="code")),
        fires=fires,
        events=events,
        errors=errors,
        outages=outages,
    )


def _by_name(args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    return {**{str(place): arg for place, arg in enumerate(args)}, **named}


def read_logs(directory: Path) -> tuple[Counter[str], list[str], list[str]]:
    """Return the events of all processes, the lines that are no event, and the outages that were told."""
    events: Counter[str] = Counter()
    errors: list[str] = []
    outages: list[str] = []
    for log in sorted(directory.glob("*.log")):
        for line in log.read_text().splitlines():
            told = _parsed(line)
            events[told["event"]] += 1
            if told["event"] == "log":
                errors.append(f"{log.name}: {line}")
            elif told["event"] in {"database.lost", "heartbeat.lost"}:
                outages.append(f"{log.name}: {told['text']}")
    return events, errors, outages


def _parsed(line: str) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(line)
    except ValueError:  # cut short by a kill, or printed by the interpreter
        return {"event": "log"}
    return told
