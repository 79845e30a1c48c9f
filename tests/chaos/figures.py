"""How long the killed fleet's jobs stayed away, and the numbers that a run prints."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from tests.chaos.audit import lost_by_the_living
from tests.chaos.story import RECOVERY, Story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tests.chaos.evidence import Evidence


def recoveries(story: Story, found: Evidence, *, in_time: bool = True) -> dict[str, float]:
    """Return, for each killed worker, the seconds until the last of its jobs was taken back."""
    killed = story.killed(in_time=in_time)
    taken_back: dict[str, datetime] = {}
    for attempts in found.attempts.values():
        for attempt in attempts:
            worker = attempt.worker_id.partition(":")[0]
            if attempt.outcome == "lost" and worker in killed:
                taken_back[worker] = max(attempt.ended_at, taken_back.get(worker, attempt.ended_at))
    return {worker: (moment - killed[worker]).total_seconds() for worker, moment in taken_back.items()}


def late(story: Story, found: Evidence, *, slack: float, one_writer: bool) -> list[str]:
    """Return a sentence for each killed worker whose jobs were taken back too late.

    ``slack`` is for a machine that has much else to do. Where there is one
    writer for the whole database, a process that stands still may hold its
    lock: nobody can be on time then.
    """
    allowed = RECOVERY.total_seconds() + slack
    return [
        f"the jobs of {worker} were taken back {seconds:.2f} s after its death, not within {allowed:.2f} s"
        for worker, seconds in recoveries(story, found).items()
        if seconds > allowed and not (one_writer and _stood_still(story, worker, seconds))
    ]


def _stood_still(story: Story, worker: str, seconds: float) -> bool:
    begin = next(span.begin for span in story.spans if span.worker == worker and span.end is None)
    return any(
        span.end is not None and span.begin.timestamp() < begin.timestamp() + seconds and span.end > begin
        for span in story.spans
    )


def lines(story: Story, found: Evidence) -> Iterator[str]:
    """Tell what happened."""
    counts, events = story.counts, found.events
    yield (
        f"done to the fleet: {counts['kills']} kills ({counts['blackouts']} times the whole fleet), "
        f"{counts['stops']} stops longer than the lease, {counts['terms']} SIGTERMs"
    )
    yield (
        f"asked of it: {len(story.enqueued)} jobs, {len(story.rolled_back)} rolled back, {counts['cancels']} cancels, "
        f"{counts['requeues']} requeues, {counts['busy']} times busy"
    )
    states = Counter(job.state for job in found.jobs.values())
    outcomes = Counter(attempt.outcome for attempts in found.attempts.values() for attempt in attempts)
    yield f"jobs: {len(found.jobs)}: {_counted(states)}"
    yield f"attempts: {sum(outcomes.values())}: {_counted(outcomes)}"
    yield (
        f"effects: {sum(found.marks.values())} rows, {sum(found.lines.values())} lines; late results dropped: "
        f"{events['job.lost']}; ends that could not be written: {events['job.unsettled']}"
    )
    for cron in found.crons:
        yield f"cron {cron.name}: {cron.fired} fired, {cron.missed} missed"
    yield f"jobs taken from workers to which nothing was done: {len(lost_by_the_living(story, found))}"
    for name, in_time in (("others worked", True), ("nobody was left, or it had stood still", False)):
        seconds = sorted(recoveries(story, found, in_time=in_time).values())
        if seconds:
            yield (
                f"recovery of {len(seconds)} killed workers' jobs while {name}: "
                f"median {median(seconds):.2f} s, longest {seconds[-1]:.2f} s"
            )
    yield f"bound: lease + sweep + lease/3 = {RECOVERY.total_seconds():.2f} s"
    if found.outages:
        yield f"outages told: {len(found.outages)}, the first: {found.outages[0]}"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
