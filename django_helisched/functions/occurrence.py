"""The job that stands for one occurrence of a cron."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django_helisched.crons.catch_up import jitter_of, overlap_key_of
from django_helisched.functions.call import budget_of
from django_helisched.functions.limiting import limit_key_of
from django_helisched.functions.registry import find
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import DEFAULT_QUEUE, Kind, NewJob, Trigger
from django_helisched.stores.clock import cut

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from django_helisched.crons.cron import CronSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One occurrence that becomes a job now, and what the job is to know beside it."""

    due_at: datetime
    now: datetime
    trigger: str = Trigger.CRON
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a job gets where neither its cron nor its function says anything."""

    timeout: timedelta | None
    max_failures: int
    app_version: str


def job_for(cron: CronSnapshot, occurrence: Occurrence, defaults: Defaults) -> NewJob:
    """Return the job: due at its occurrence, startable from now on, later by the cron's jitter."""
    return NewJob(
        id=uuid7(),
        fn_path=cron.fn_path,
        created_at=occurrence.now,
        due_at=cut(occurrence.due_at),
        next_run_at=cut(occurrence.now + jitter_of(cron.id, cron.jitter)),
        args=cron.args,
        kwargs=cron.kwargs,
        meta={"fire_at": occurrence.due_at.isoformat(), **occurrence.facts},
        app_version=defaults.app_version,
        name=cron.name,
        space=cron.space,
        trigger=occurrence.trigger,
        cron_id=cron.id,
        overlap_key=overlap_key_of(cron),
        **_choices(cron, defaults),
    )


def _choices(cron: CronSnapshot, defaults: Defaults) -> dict[str, Any]:
    """Return what the function declares, and the cron's own word where it has one."""
    function = find(cron.fn_path)
    if function is None:
        # Some other process will know it; until then the job is held.
        chosen: dict[str, Any] = {
            "kind": Kind.MUTATION,
            "queue": DEFAULT_QUEUE,
            "max_failures": defaults.max_failures,
            "timeout": defaults.timeout,
        }
    else:
        chosen = {
            "kind": function.kind,
            "at_most_once": function.at_most_once,
            "queue": function.queue,
            "priority": function.priority,
            "max_failures": budget_of(function),
            "timeout": function.timeout or defaults.timeout,
            "limit_key": limit_key_of(function, cron.args, cron.kwargs, space=cron.space),
        }
    own = {"queue": cron.queue, "priority": cron.priority}
    if not chosen.get("at_most_once"):
        own["max_failures"] = cron.max_failures
    return chosen | {key: value for key, value in own.items() if value is not None}
