"""Why a job that was just stored may never run: said once, to a developer, while DEBUG is on."""

from __future__ import annotations

import difflib
import logging
from typing import TYPE_CHECKING

from django.conf import settings

from django_helisched import conf, wiring
from django_helisched.stores.queue_filter import QueueFilter

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django_helisched.models import Job
    from django_helisched.stores.base import WorkerReport

logger = logging.getLogger("django_helisched")

_told: set[str] = set()


def advise(job: Job) -> None:
    """Log, once per process and sentence, that nobody runs this job; only with DEBUG, and never raising."""
    if not settings.DEBUG or len(_told) > 1:
        return
    try:
        workers = wiring.job_store().live_workers(conf.get_settings().lease)
    except Exception:  # advice must not cost the caller its job
        logger.debug("No advice: the workers could not be read.", exc_info=True)
        return
    sentence = nobody_runs(job) if not workers else queue_advice(job.queue, workers)
    kind = "nobody" if not workers else "queue"
    if sentence and kind not in _told:
        _told.add(kind)
        logger.warning(sentence)


def nobody_runs(job: Job) -> str:
    """Return what to do where no scheduler reports."""
    return (
        f"Job #{job.id.hex[-8:]} is stored, but no scheduler is running. "
        "In another terminal: python manage.py runscheduler"
    )


def queue_advice(queue: str, workers: Sequence[WorkerReport]) -> str:
    """Return a sentence where none of ``workers`` serves ``queue``, else ""."""
    if any(QueueFilter.of(worker.queues).admits(queue) for worker in workers):
        return ""
    near = difflib.get_close_matches(queue, {name for worker in workers for name in worker.queues}, n=1)
    hint = f' Did you mean "{near[0]}"?' if near else " Start one with --queue-name, or use a queue that is served."
    served = sorted({text for worker in workers for text in served_words(worker.queues)})
    return f'Queue "{queue}" is served by no running scheduler (they serve: {", ".join(served)}).{hint}'


def served_words(patterns: Collection[str]) -> tuple[str, ...]:
    """Return the queues that a worker reports to serve, as people say it; nothing where it serves all."""
    queues = QueueFilter.of(patterns)
    without = f"all but {' and '.join(queues.exclude)}"
    return queues.include or ((without,) if queues.exclude else ())
