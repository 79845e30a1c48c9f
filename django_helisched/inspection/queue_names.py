"""The names of queues that are in use, without reading the jobs one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import connections

from django_helisched import wiring
from django_helisched.functions import registered
from django_helisched.inspection.rows import alias, rows_of
from django_helisched.jobs.job import DEFAULT_QUEUE, Hold, State
from django_helisched.models import Cron, Job
from django_helisched.stores.base import EVERY_QUEUE
from django_helisched.stores.orm.heads import heads

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_QUEUES: Final = 200  # names that a page lists; others are reached by queue:


def declared() -> set[str]:
    """Return the queues that registered functions name, and the default one."""
    return {DEFAULT_QUEUE, *(function.queue for function in registered().values())}


def known() -> list[str]:
    """Return the declared queues and those with waiting jobs that are not paused, at most ``MAX_QUEUES``.

    One skip scan, which costs as much as there are queues and priorities, not jobs.
    """
    found = heads(connections[alias()], EVERY_QUEUE, wiring.job_store().now())
    return first(declared(), (head.queue for head in found))


def first(*names: Iterable[str]) -> list[str]:
    """Return the names in order, each once, at most ``MAX_QUEUES``; the earlier groups before the later."""
    found = dict.fromkeys(name for group in names for name in sorted(group))
    return sorted(list(found)[:MAX_QUEUES])


def is_used(name: str) -> bool:
    """Tell whether a function, a cron, or a waiting or running job names the queue."""
    if name in declared() or rows_of(Cron).filter(queue=name).exists():
        return True
    jobs = rows_of(Job).filter(queue=name)
    # Every hold by name: it is the second column of the index that finds a queue.
    waiting = jobs.filter(state=State.PENDING.value, hold__in=[hold.value for hold in Hold])
    return waiting.exists() or jobs.filter(state=State.IN_PROGRESS.value).exists()
