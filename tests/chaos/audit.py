"""Compare what was done with what is there, and name every difference."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from django_helisched.crons.occurrences import count_occurrences
from tests.chaos import jobs as bodies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.models import Job
    from tests.chaos.evidence import Evidence
    from tests.chaos.story import Story

TERMINAL = {"success", "failed", "canceled"}
CALLED = (bodies.enter, bodies.tell, bodies.tell_async, bodies.tell_once)
ACTIONS = (bodies.tell, bodies.tell_async, bodies.tell_once)
INSTANT = timedelta(milliseconds=1)


def breaches(story: Story, found: Evidence) -> list[str]:
    """Return a sentence for each promise that was not kept; none: all were."""
    checks = (
        _existence(story, found),
        _ends(found),
        _attempts(found),
        _mutations(found),
        _actions(story, found),
        _callbacks(story, found),
        _crons(found),
        iter(story.surprises),
        iter(found.errors),
    )
    return [sentence for check in checks for sentence in check]


def _existence(story: Story, found: Evidence) -> Iterator[str]:
    for job_id in story.enqueued:
        if job_id not in found.jobs:
            yield f"job {job_id} was enqueued and committed, and is not there"
    for job_id in story.rolled_back:
        if job_id in found.jobs:
            yield f"job {job_id} is there although its caller's transaction was rolled back"


def _ends(found: Evidence) -> Iterator[str]:
    for job in found.jobs.values():
        if job.state not in TERMINAL:
            yield f"{_name(job)} is {job.state}, held by {job.lease_holder}, though the fleet had time to finish it"
        if job.lease_holder is not None or job.lease_expires_at is not None:
            yield f"{_name(job)} is {job.state} and still has a lease"


def _attempts(found: Evidence) -> Iterator[str]:
    for job in found.jobs.values():
        numbers = [attempt.number for attempt in found.attempts[job.pk]]
        if numbers != list(range(1, job.attempt_count + 1)):
            yield f"{_name(job)} has attempts {numbers} and an attempt_count of {job.attempt_count}"


def _mutations(found: Evidence) -> Iterator[str]:
    children = Counter(
        (kwargs["0"], kwargs["1"]) for job_id, kwargs in found.kwargs.items() if _is(found.jobs[job_id], bodies.follow)
    )
    for job in found.of(bodies.enter):
        runs = found.runs(job, found.marks, "run ")
        successes = sum(call.pk in found.kwargs and _kind(found, call) == "success" for call in found.calls[job.pk])
        if len(runs) != successes or any(count > 1 for count in runs.values()):
            yield f"{_name(job)} took effect {sum(runs.values())} times and ended in success {successes} times: {runs}"
        if job.state == "success" and job.attempt_count not in runs:
            yield f"{_name(job)} ended in success with attempt {job.attempt_count}; {sorted(runs)} took effect"
        for number in runs:
            if children[str(job.pk), number] != 1:
                yield f"{_name(job)}, attempt {number}, has {children[str(job.pk), number]} children"
    for job in found.of(bodies.follow):
        parent, number = found.kwargs[job.pk]["0"], found.kwargs[job.pk]["1"]
        if found.marks[f"run {parent} {number}"] != 1:
            yield f"{_name(job)} is the child of a run that did not take effect: {parent} {number}"
        yield from _effect(found, job, f"child {parent} {number}")


def _actions(story: Story, found: Evidence) -> Iterator[str]:
    for job in found.of(*ACTIONS):
        runs = found.runs(job, found.lines)
        for number, count in runs.items():
            if count > 1:
                yield f"{_name(job)}: attempt {number} ran {count} times"
        for attempt in found.attempts[job.pk]:
            if attempt.outcome == "success" and attempt.number not in runs:
                yield f"{_name(job)}: attempt {attempt.number} is a success that never ran"
    for job in found.of(bodies.tell_once):
        runs, allowed = found.runs(job, found.lines), 1 + story.requeued[job.pk]
        if sum(runs.values()) > allowed:
            yield f"{_name(job)} may run at most {allowed} times, and ran in the attempts {sorted(runs)}"


def _callbacks(story: Story, found: Evidence) -> Iterator[str]:
    for job in found.of(*CALLED):
        ends = 1 + story.requeued[job.pk]
        if len(found.calls[job.pk]) != ends:
            yield f"{_name(job)} ended {ends} times and called back {len(found.calls[job.pk])} times"
    for job in found.of(bodies.ended):
        kwargs = found.kwargs[job.pk]
        yield from _effect(found, job, f"end {kwargs['job_id']} {job.pk} {_kind(found, job)} {kwargs['context']}")


def _crons(found: Evidence) -> Iterator[str]:
    for cron in found.crons:
        yield from _cron(found, cron)


def _cron(found: Evidence, cron: CronSnapshot) -> Iterator[str]:
    if cron.next_run_at is None or cron.last_error:
        yield f'the cron "{cron.name}" does not fire any more: {cron.last_error}'
        return
    elapsed = count_occurrences(cron.spec, cron.tz, cron.counted_since, cron.next_run_at - INSTANT, anchor=cron.anchor)
    fires = found.fires[cron.id]
    fired = sum(1 for fire in fires if fire.job_id is not None)
    missed = sum(fire.count for fire in fires if fire.job_id is None)
    jobs = [job for job in found.jobs.values() if job.cron_id == cron.id]
    if not (cron.fired + cron.missed == elapsed and cron.fired == fired == len(jobs) and cron.missed == missed):
        yield (
            f'the cron "{cron.name}" counts {cron.fired} fired + {cron.missed} missed of {elapsed} elapsed; '
            f"it has {fired} fired and {missed} missed in its rows, and {len(jobs)} jobs"
        )
    twice = [moment for moment, count in Counter(found.fire_at[job.pk] for job in jobs).items() if count > 1]
    if twice:
        yield f'the cron "{cron.name}" became a job more than once for {twice}'
    for job in jobs:
        yield from _effect(found, job, f"tick {cron.name} {_spoken(found.fire_at[job.pk])}")


def _effect(found: Evidence, job: Job, mark: str) -> Iterator[str]:
    wanted = 1 if job.state == "success" else 0
    if found.marks[mark] != wanted:
        yield f"{_name(job)} ended {job.state}, and took effect {found.marks[mark]} times"


def _is(job: Job, function: object) -> bool:
    return job.fn_path == getattr(function, "path", None)


def _kind(found: Evidence, call: Job) -> str:
    kind: str = found.kwargs[call.pk]["result"]["kind"]
    return kind


def _spoken(moment: str) -> str:
    # As str() of a datetime says it, which is how the body wrote it.
    return moment.replace("T", " ")


def _name(job: Job) -> str:
    return f"{job.fn_path.rpartition('.')[2]} {job.pk}"


def lost_by_the_living(story: Story, found: Evidence) -> list[UUID]:
    """Return the jobs that were taken from workers to which nothing had been done."""
    harmed = {span.worker for span in story.spans}
    return [
        attempt.job_id
        for attempts in found.attempts.values()
        for attempt in attempts
        if attempt.outcome == "lost" and attempt.worker_id.partition(":")[0] not in harmed
    ]
