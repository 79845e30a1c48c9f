"""Bodies of jobs whose process is killed around a statement. Every effect is a row, so that none escapes a count."""

from __future__ import annotations

from typing import Any

from django_helisched import Limit, NonRetryable, action, current_job, mutation
from tests.app.models import Ledger


@mutation
def write(marker: str) -> str:
    """Write one row."""
    Ledger.objects.create(marker=marker)
    return marker


@mutation(concurrency=Limit(1, key="narrow"))
def write_narrowly(marker: str) -> str:
    """Write one row; one job at a time does."""
    Ledger.objects.create(marker=marker)
    return marker


@mutation
def write_and_enqueue(marker: str) -> str:
    """Write one row, and enqueue a child that writes another."""
    Ledger.objects.create(marker=marker)
    write.enqueue(f"child of {marker}")
    return marker


@action
def act(marker: str) -> None:
    """Write one row as an effect on the world: at once, for good."""
    Ledger.objects.create(marker=marker)


@action(at_most_once=True)
def act_once(marker: str) -> None:
    Ledger.objects.create(marker=marker)


@action
def refuse() -> None:
    raise NonRetryable("it is over")


@mutation
def write_and_grow(marker: str) -> None:
    """Write one row, and add a job to the same batch that writes another."""
    Ledger.objects.create(marker=marker)
    write.using(batch=current_job().batch, name="grown").enqueue("grown")


@mutation
def told_of_batch(batch_id: str, context: Any, counts: dict[str, int]) -> None:
    """Write how the jobs of a batch ended."""
    Ledger.objects.create(marker=f"{context} {counts['success']} {counts['failed']} {counts['canceled']}")


@mutation
def write_occurrence(cron: str) -> None:
    """Write the second of the occurrence that this run stands for."""
    fire_at = current_job().fire_at
    Ledger.objects.create(marker=f"{cron} {fire_at and fire_at.second}")


@mutation
def told(job_id: str, context: Any, result: Any) -> None:
    """Write how the job of that name ended."""
    Ledger.objects.create(marker=f"{context} {result['kind']}")
