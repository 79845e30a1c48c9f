"""Signals for observers. A receiver that raises is logged; it never changes a job's fate."""

from __future__ import annotations

from django.dispatch import Signal

# Each is sent with send_robust() after the fact is committed. The ends of actions are told by one thread, one after
# another: a receiver that takes long holds up the others.
job_settled = Signal()  # job_id: UUID, fn_path: str, outcome: jobs.outcome.Outcome
cron_fired = Signal()  # cron_id: UUID, name: str, fired: int, missed: int
