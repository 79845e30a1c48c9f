"""Old rows: delete them now, or count what would go."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from django_helisched import wiring
from django_helisched.inspection.answer import Answer, table
from django_helisched.scheduler.pruning import KINDS, OUTCOMES, Round, configured

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.scheduler.pruning import Step

    Watch = Callable[[Step, int], object]  # a step, and how many rows of its kind there were so far

MOST: Final = 100_000  # rows of each kind that a count looks at; behind them it says "or more"
_COUNT_LIMIT: Final = 500  # rows of one look of a count, which locks none
_NAMES: Final = {kind: f"{kind} jobs" if kind in OUTCOMES else kind for kind in KINDS}


def prune(*, dry_run: bool, watch: Watch, most: int = MOST) -> Answer:
    """Delete what RETENTION says may go, to the end, or count it among ``most`` rows of each kind.

    ``watch`` is told of every step. Stopped by Ctrl-C it answers with what is done so far.
    """
    jobs, crons, kept = wiring.job_store(), wiring.cron_store(), configured()
    if dry_run:
        counting = Round(jobs, crons, kept, pretend=True, limit=min(most, _COUNT_LIMIT), most=most)
        return _told(counting, watch, dry_run=True)
    return _told(Round(jobs, crons, kept), watch, dry_run=False)


def _told(round_: Round, watch: Watch, *, dry_run: bool) -> Answer:
    counts: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    last: dict[str, Step] = {}
    refused, is_stopped = 0, False
    try:
        for step in round_.steps():
            last[step.kind] = step
            counts[step.kind] += step.pruned.count
            refused += step.pruned.refused
            watch(step, counts[step.kind])
    except KeyboardInterrupt:
        is_stopped = True
    cut = [kind for kind, step in last.items() if step.pruned.after is not None]
    data = {
        "dry_run": dry_run,
        "rows": dict(counts),
        "or_more": cut if dry_run else [],
        "refused": refused,
        "stopped": is_stopped,
    }
    rows = [(_NAMES[kind], f"{counts[kind]}{'+' if dry_run and kind in cut else ''}") for kind in KINDS]
    lines = table(("rows", "would be deleted" if dry_run else "deleted"), rows)
    return Answer(data, [*lines, *_remarks(refused, dry_run=dry_run, is_stopped=is_stopped)], ok=not is_stopped)


def _remarks(refused: int, *, dry_run: bool, is_stopped: bool) -> list[str]:
    told = []
    if refused:
        told.append(f"{refused} more had to stay: rows of this project's own tables point at them.")
    if is_stopped:
        told.append(
            "Stopped before the end." + ("" if dry_run else " What is deleted stays so; run it again to go on.")
        )
    if dry_run:
        told.append("Nothing was deleted.")
    return told
