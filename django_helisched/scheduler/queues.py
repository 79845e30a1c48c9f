"""Queues at run time: pause, resume, and what is paused.

A queue is a name that jobs carry; it needs no row, and only the one that was ever
paused has one. Every running scheduler sees a change at its next look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched import wiring
from django_helisched.exceptions import InvalidOption
from django_helisched.functions.options import check_instant, check_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django_helisched.stores.base import QueuePause

__all__ = ["pause", "paused", "resume"]

NAME_LENGTH, BY_LENGTH, REASON_LENGTH = 100, 150, 300  # as the columns hold


def pause(queue: str, *, by: str = "", reason: str = "", until: datetime | None = None) -> None:
    """Start no job of the queue any more, until it is resumed or until ``until``; what runs goes on.

    A second pause replaces the first. Raises InvalidOption for a name that no
    queue can have, and for an ``until`` that is naive or has passed.
    """
    store = wiring.job_store()
    name = _checked(queue)
    end = None if until is None else check_instant(until, "until")
    if end is not None and end <= store.now():
        raise InvalidOption(f"until={until} has passed: the pause would be over before it began.")
    store.pause_queue(
        name, by=check_text(by, "by", BY_LENGTH), reason=check_text(reason, "reason", REASON_LENGTH), until=end
    )


def resume(queue: str) -> bool:
    """Start the jobs of the queue again, those that waited first; False: nobody had paused it."""
    done = wiring.job_store().resume_queue(_checked(queue))
    if done:
        wiring.wake_on_commit()
    return done


def paused() -> Sequence[QueuePause]:
    """Return the pauses that hold now, in the order of the queues' names: who, why, since when, until when."""
    return wiring.job_store().pauses()


def _checked(queue: str) -> str:
    return check_text(queue, "queue", NAME_LENGTH, blank=False)
