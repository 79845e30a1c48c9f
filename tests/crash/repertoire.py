"""Every operation that is killed, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crash import batch_operations, cron_operations, ending_operations, job_operations, prune_operations

if TYPE_CHECKING:
    from tests.crash.operation import Operation

OPERATIONS: dict[str, Operation] = {
    "enqueue in a transaction": job_operations.EnqueueInATransaction(),
    "enqueue many": job_operations.EnqueueMany(),
    "enqueue alike": job_operations.EnqueueAlike(),
    "claim": job_operations.Claim(),
    "run a mutation": job_operations.RunAMutation(),
    "run an action": job_operations.RunAnAction(),
    "run an action once": job_operations.RunAnActionOnce(),
    "run under a limit": job_operations.RunUnderALimit(),
    "settle": ending_operations.Settle(),
    "sweep": ending_operations.Sweep(),
    "cancel": ending_operations.Cancel(),
    "requeue": ending_operations.Requeue(),
    "fire one": cron_operations.FireOne(),
    "fire two together": cron_operations.FireTwoTogether(),
    "backfill": cron_operations.Backfill(),
    "reconcile": cron_operations.Reconcile(),
    "open a batch": batch_operations.OpenABatch(),
    "end the last jobs of a batch": batch_operations.EndTheLastJobs(),
    "prune": prune_operations.Prune(),
}
