"""django-q2 on its ORM broker: a cluster of processes, of which the seats are the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.base import Peer, manage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DjangoQ2(Peer):
    name = "django-q2"
    requirements = ("django-q2==1.11.1",)
    apps = ("django_q",)
    note = "its seats are processes, beside three that guard, push and monitor"
    has_bulk = False
    unfinished_sql = "SELECT count(*) FROM django_q_ormq"
    table = "django_q_ormq"
    future = {"lock": "{in_a_year}"}

    def settings(self, database: Mapping[str, Any], seats: int) -> dict[str, Any]:
        cluster = {
            "name": "bench",
            "orm": "default",
            "workers": seats,
            # The docs ask for a retry above the timeout, and let one call take more rows from the broker.
            "timeout": 600,
            "retry": 900,
            "bulk": 10,
            "queue_limit": 100,
            "save_limit": 0,
            "log_level": "WARNING",
        }
        return {"Q_CLUSTER": cluster}

    def enqueue(self, task: Any, number: int) -> None:
        from django_q.tasks import async_task

        async_task(f"benchmarks.app.tasks.{task.__name__}", number)

    def worker(self, seats: int) -> Sequence[str]:
        return manage("qcluster", "-v", "0")


PEER = DjangoQ2()
