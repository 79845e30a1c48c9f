"""What a success writes: the columns that change, and those of its attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.jobs.follow_up import bounded

if TYPE_CHECKING:
    from django_helisched.stores.base import Settlement

# Of an attempt these differ from row to row, and the others are the same for a worker's batch.
ATTEMPT = ("job_id", "number", "started_at", "result", "log")
INTO = "(job_id, number, started_at, result, log, ended_at, worker_id, outcome, error_class, error, traceback)"
ALIKE = "%s, %s, 'success', '', '', ''"
KEYLESS_CHANGES = (
    "state = 'success', failure_reason = '', attempt_count = attempt_count + 1, completed_at = %s, last_error = '', "
    "lease_holder = NULL, lease_expires_at = NULL"
)
CHANGES = f"{KEYLESS_CHANGES}, key_digest = CASE WHEN unique_until = 'terminal' THEN NULL ELSE key_digest END"
OURS = "state = 'in_progress' AND cancel_requested_at IS NULL"


def attempt_values(settlement: Settlement) -> list[Any]:
    """Return the values of the columns ATTEMPT."""
    claim, outcome = settlement.claim, settlement.outcome
    return [claim.id, claim.attempt, settlement.started_at, bounded(outcome.result), settlement.log]
