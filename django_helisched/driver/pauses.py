"""Say which of the served queues are paused, when that changes: a queue that stands still must explain itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.driver.events import DriverEvent, What

if TYPE_CHECKING:
    from django_helisched.driver.events import Announcer
    from django_helisched.stores.base import JobStore, QueueFilter, QueuePause


class Pauses:
    """The pauses of the served queues as they were last seen."""

    def __init__(self, jobs: JobStore, queues: QueueFilter, announce: Announcer) -> None:
        self._jobs = jobs
        self._queues = queues
        self._announce = announce
        self._seen: dict[str, QueuePause] = {}

    @property
    def are_known(self) -> bool:
        """Tell whether a queue was paused at the last look."""
        return bool(self._seen)

    def look(self) -> None:
        """Announce every pause that is new or changed, and every end of one."""
        pauses = {pause.queue: pause for pause in self._jobs.pauses() if self._queues.admits(pause.queue)}
        for queue, pause in pauses.items():
            if pause != self._seen.get(queue):
                self._announce(DriverEvent(what=What.QUEUE_PAUSED, text=_words(pause)))
        for queue in self._seen.keys() - pauses.keys():
            self._announce(DriverEvent(what=What.QUEUE_RESUMED, text=f'The queue "{queue}" is not paused any more.'))
        self._seen = pauses


def _words(pause: QueuePause) -> str:
    by = f" by {pause.by}" if pause.by else ""
    until = f" until {pause.until:%Y-%m-%d %H:%M:%S} UTC" if pause.until else ""
    text = f'The queue "{pause.queue}" is paused{by} since {pause.paused_at:%Y-%m-%d %H:%M:%S} UTC{until}'
    return f"{text}: {pause.reason}" if pause.reason else f"{text}."
