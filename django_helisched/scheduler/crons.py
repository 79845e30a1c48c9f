"""Crons at run time: create, edit, delete, pause, resume, run now, make up for what was missed.

A cron is named by its row, its id, or its name (with ``space=`` where it has one). What
code or a provider declares is changed there; only ``pause``, ``resume``, ``run_now`` and
``backfill`` are for every cron. Each verb joins the caller's transaction; a running
scheduler sees the change at its next look. Of two that change a cron at once the second
starts from what the first wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from django_helisched import conf, wiring
from django_helisched.crons import operations
from django_helisched.crons.catch_up import overlap_key_of
from django_helisched.crons.cron import Overlap
from django_helisched.crons.declaring import declare, schedule_of
from django_helisched.exceptions import Busy, InvalidOption, StillRunning
from django_helisched.functions import resolve
from django_helisched.functions.call import Call, enqueue_calls
from django_helisched.jobs.job import Trigger
from django_helisched.scheduler import editing
from django_helisched.scheduler.backfilling import Backfill, planned, stored
from django_helisched.scheduler.checking import check_function
from django_helisched.scheduler.spaces import put_schedules, reconcile

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from django_helisched.crons.changes import CronUpdate
    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.crons.declaring import Arguments, Function
    from django_helisched.crons.options import CronOptions
    from django_helisched.models import Cron, Job

    CronRef = Cron | CronSnapshot | UUID | str

__all__ = [
    "Backfill",
    "backfill",
    "create",
    "delete",
    "edit",
    "get",
    "pause",
    "put_schedules",
    "reconcile",
    "resume",
    "run_now",
]

_TRIES = 5  # a compare-and-set lost five times in a row means a storm of edits, not bad luck


def get(cron: CronRef, *, space: str = "") -> CronSnapshot:
    """Return the cron as it stands now; raise InvalidOption where none or several have the name."""
    store = wiring.cron_store()
    cron_id = cron if isinstance(cron, UUID) else getattr(cron, "id", None)
    if isinstance(cron_id, UUID):
        found = store.get(cron_id)
        if found is None:
            raise InvalidOption(f"No cron has the id {cron_id}; it was deleted meanwhile.")
        return found
    named = store.find(str(cron), space=space)
    if len(named) != 1:
        many = "No cron has" if not named else "Several crons have"
        raise InvalidOption(f'{many} the name "{cron}" in space "{space}". Name it by its id.')
    return named[0]


def create(
    name: str,
    fn: Function,
    args: Arguments = None,
    *,
    expr: str | None = None,
    every: timedelta | float | None = None,
    source: str = "operator",
    by: str = "",
    **options: Unpack[CronOptions],
) -> CronSnapshot:
    """Store a cron and return it: due at its first occurrence after now.

    ``expr`` is a cron expression, ``every`` a timedelta or seconds; options are those of
    ``cron_jobs()``. ``source`` is "operator" or "api". A deleted cron of that name is the same
    row again, with its counts. Raises InvalidSchedule, InvalidOption, UnknownFunction,
    InvalidArguments or TypeError, each with the cron's name, before anything is stored.
    """
    in_zone = {"tz": conf.get_settings().tz, **options}
    declaration = declare(name, lambda: schedule_of(expr, every), fn, args, in_zone)
    check_function(declaration)
    created = editing.store_new(declaration, source=source, by=by)
    wiring.wake_on_commit()
    return created


def edit(cron: CronRef, /, *, space: str = "", **changes: Any) -> bool:
    """Change a cron that was created at run time; False: the changes change nothing.

    ``expr`` or ``every``, ``fn``, ``args``, and the options of ``create``. A new schedule, zone or
    window starts from the next occurrence after now, and overdue occurrences count as missed;
    other edits keep the due time. Raises as ``create`` does, before anything is written.
    """
    return _change(cron, space, lambda row, now: operations.edit(row, now, editing.fields_of(row, changes)))


def delete(cron: CronRef, *, space: str = "") -> bool:
    """Take a cron that was created at run time out of use; False: it was deleted already.

    Its row and history stay, as archived. Jobs that it has enqueued go on.
    """

    def archived(row: CronSnapshot, now: datetime) -> CronUpdate | None:
        editing.refuse_declared(row, "remove it there")
        return operations.archive(row, now)

    return _change(cron, space, archived)


def pause(cron: CronRef, *, by: str = "", reason: str = "", space: str = "") -> bool:
    """Stop the cron from firing until it is resumed; False: it was paused already.

    Kept apart from the declaration: a deploy never touches it. Occurrences that are
    overdue already count as missed.
    """
    return _change(
        cron,
        space,
        lambda row, now: None if row.paused_at is not None else operations.pause(row, now, by=by, reason=reason),
    )


def resume(cron: CronRef, *, space: str = "") -> bool:
    """Let the cron fire again from its next occurrence after now; False: it was not paused.

    Paused time is never missed and never caught up.
    """
    return _change(cron, space, lambda row, now: None if row.paused_at is None else operations.resume(row, now))


def run_now(cron: CronRef, *, space: str = "") -> Job:
    """Enqueue one job of the cron, due now, and return it.

    It stands for no occurrence and does not move the schedule. With ``overlap="skip"`` it
    raises StillRunning while a job of the cron is pending or in progress (of two callers in
    one instant the second's job waits for the first); with ``"cancel_previous"`` it waits for
    the ones before. Raises UnknownFunction where this process does not know the function.
    """
    row = get(cron, space=space)
    if row.overlap == Overlap.SKIP and wiring.cron_store().live_jobs(row.id):
        raise StillRunning(
            f'A job of the cron "{row.name}" is still pending or in progress, and its overlap is "skip". '
            "Wait for its end, or cancel it. Nothing was enqueued."
        )
    given: dict[str, Any] = {
        "space": row.space,
        "queue": row.queue,
        "priority": row.priority,
        "max_failures": row.max_failures,
    }
    function = resolve(row.fn_path).using(**given, name=row.name, parent=None)
    overlap_key = overlap_key_of(row)
    call = Call(function, row.args, row.kwargs, trigger=Trigger.MANUAL, cron_id=row.id, overlap_key=overlap_key)
    return enqueue_calls([call])[0]


def backfill(cron: CronRef, start: datetime, end: datetime, *, preview: bool = False, space: str = "") -> Backfill:
    """Enqueue a job for each missed occurrence from ``start`` to ``end``, both aware and inclusive.

    Only what a Fire row still names as missed, the oldest 1000 at most; each moves from missed
    to fired in the transaction that stores its job, so that none is made up for twice. With
    ``preview`` nothing is written. Raises UnknownFunction, InvalidOption, or Busy where the cron
    changed five times meanwhile.
    """
    for _ in range(_TRIES):
        row = get(cron, space=space)
        plan = planned(row, start, end)
        if preview or not plan.due:
            return Backfill.of(plan)
        done = stored(row, plan)
        if done is not None:
            wiring.wake_on_commit()
            return done
    raise Busy(f'The cron "{row.name}" changed {_TRIES} times while this was tried. Try again.')


def _change(cron: CronRef, space: str, update_of: Callable[[CronSnapshot, datetime], CronUpdate | None]) -> bool:
    store = wiring.cron_store()
    for _ in range(_TRIES):
        row = get(cron, space=space)
        update = update_of(row, store.now())
        if update is None:
            return False
        if store.change(update):
            wiring.wake_on_commit()
            return True
    raise Busy(f'The cron "{row.name}" changed {_TRIES} times while this was tried. Try again.')
