"""The queues of a project: what waits in each, what runs, and who paused it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import connections

from django_helisched import wiring
from django_helisched.exceptions import InvalidOption
from django_helisched.inspection import fleet, queue_names
from django_helisched.inspection.answer import Answer, table
from django_helisched.inspection.distances import relative, text_of_duration
from django_helisched.inspection.rows import alias, rows_of
from django_helisched.jobs.job import Hold, State
from django_helisched.models import Job
from django_helisched.scheduler import queues
from django_helisched.stores.base import QueueFilter
from django_helisched.stores.orm.heads import every_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django_helisched.stores.base import QueuePause, WorkerReport
    from django_helisched.stores.orm.heads import Head

MOST: Final = 10_000  # jobs of a queue that are counted; more is "10000+"
_HEAD: Final = ("queue", "due", "held", "running", "oldest due", "status")


def listing() -> Answer:
    """Return every queue that is declared, waited in, worked on or paused, with bounded counts."""
    now = wiring.job_store().now()
    pauses = {pause.queue: pause for pause in queues.paused()}
    heads = every_head(connections[alias()], now)
    running = Counter(rows_of(Job).filter(state=State.IN_PROGRESS.value).values_list("queue", flat=True))
    names = queue_names.first(pauses, running, (head.queue for head in heads), queue_names.declared())
    workers = fleet.live_workers()
    found = [_queue(name, heads, running[name], pauses.get(name), workers, now) for name in names]
    return Answer({"queues": found}, table(_HEAD, [_row(queue, pauses.get(queue["name"]), now) for queue in found]))


def pause(queue: str, *, by: str, reason: str, until: datetime | None) -> Answer:
    """Pause a queue and say what that stops; raises InvalidOption as ``scheduler.queues.pause`` does."""
    queues.pause(queue, by=by, reason=reason, until=until)
    paused = next(pause for pause in queues.paused() if pause.queue == queue)
    lines = [f'Paused "{queue}"{_until(paused)}: no job of it is started. Jobs that run go on.']
    used = queue_names.is_used(queue)
    if not used:
        known = ", ".join(queue_names.known()[:20])
        lines.append(f"No live job, no cron and no registered function uses this queue (they use: {known}).")
    return Answer({"queue": queue, "is_used": used, **_pause_facts(paused)}, lines)


def resume(queue: str) -> Answer:
    """Let a queue go on; raises InvalidOption where nobody had paused it."""
    if not queues.resume(queue):
        paused = ", ".join(pause.queue for pause in queues.paused()) or "none"
        raise InvalidOption(f'The queue "{queue}" is not paused (paused are: {paused}).')
    return Answer({"queue": queue}, [f'Resumed "{queue}": its jobs are started again, those that waited first.'])


def paused_words(pause: QueuePause, now: datetime) -> str:
    """Return "paused by ada 5 min ago, until ...: SMTP down"."""
    by = f" by {pause.by}" if pause.by else ""
    text = f"paused{by} {relative(pause.paused_at, now)}{_until(pause)}"
    return f"{text}: {pause.reason}" if pause.reason else text


def _until(pause: QueuePause) -> str:
    return "" if pause.until is None else f" until {pause.until:%Y-%m-%d %H:%M:%S} UTC"


def _queue(
    name: str,
    heads: Sequence[Head],
    running: int,
    pause: QueuePause | None,
    workers: Sequence[WorkerReport] | None,
    now: datetime,
) -> dict[str, Any]:
    due_heads = [head for head in heads if head.queue == name and head.due_at <= now]
    waiting = rows_of(Job).filter(state=State.PENDING.value, queue=name)
    due = [waiting.filter(hold="", priority=head.priority, next_run_at__lte=now) for head in due_heads]
    held = [waiting.filter(hold=hold.value) for hold in Hold if hold not in {Hold.NONE, Hold.LATER}]
    oldest = min((head.due_at for head in due_heads), default=None)
    serving = [worker for worker in workers or () if QueueFilter.of(worker.queues).admits(name)]
    return {
        "name": name,
        "due": sum(jobs.order_by()[:MOST].count() for jobs in due),
        "held": sum(jobs.order_by()[:MOST].count() for jobs in held),
        "running": running,
        "oldest_due_at": None if oldest is None else oldest.isoformat(),
        "oldest_due_seconds": None if oldest is None else (now - oldest).total_seconds(),
        "is_paused": pause is not None,
        "schedulers": None if workers is None else len(serving),
        **({} if pause is None else _pause_facts(pause)),
    }


def _pause_facts(pause: QueuePause) -> dict[str, Any]:
    return {
        "paused_at": pause.paused_at.isoformat(),
        "paused_by": pause.by,
        "reason": pause.reason,
        "until": None if pause.until is None else pause.until.isoformat(),
    }


def _row(queue: dict[str, Any], pause: QueuePause | None, now: datetime) -> tuple[str, ...]:
    status = "running" if queue["schedulers"] != 0 else "served by no running scheduler"
    if pause is not None:
        status = paused_words(pause, now)
    age = queue["oldest_due_seconds"]
    oldest = "" if age is None else text_of_duration(timedelta(seconds=age))
    return (queue["name"], *_counts(queue[name] for name in ("due", "held", "running")), oldest, status)


def _counts(numbers: Iterable[int]) -> list[str]:
    return [f"{MOST}+" if number >= MOST else str(number) for number in numbers]
