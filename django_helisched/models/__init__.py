"""The tables. Columns, constraints and indexes only: behaviour lives in the stores.

No database foreign keys on hot rows: one would make a mutation's child insert
lock its own Job row against the heartbeat.
"""

from django_helisched.models.cron import Cron, Fire
from django_helisched.models.job import Attempt, Job, JobArgs
from django_helisched.models.operations import Batch, Limit, Progress, Queue, Worker

__all__ = [
    "Attempt",
    "Batch",
    "Cron",
    "Fire",
    "Job",
    "JobArgs",
    "Limit",
    "Progress",
    "Queue",
    "Worker",
]
