"""Processes that fire and reconcile the same cron: each occurrence is accounted for once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from django_helisched import scheduler
from django_helisched.crons.catch_up import plan_firing
from django_helisched.crons.operations import pause
from django_helisched.crons.reconcile import plan_reconcile
from django_helisched.crons.registry import cron_jobs
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import Trigger
from django_helisched.models import Cron, Fire
from django_helisched.stores.base import PlannedFiring
from django_helisched.stores.clock import cut
from django_helisched.testing.contract import START
from django_helisched.testing.contract.factories import GRACE, SECOND, all_jobs, new_job
from tests.app.jobs import note

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.crons.reconcile import ReconcilePlan
    from django_helisched.stores.orm import OrmCronStore, OrmJobStore
    from tests.races.stage import Stage

MINUTE = 60 * SECOND


def reconciling(crons: OrmCronStore, *names: str, seconds: float = 60, mark: str = "a") -> Callable[[], ReconcilePlan]:
    """Return what a process does whose code declares these crons, or one."""
    declared = cron_jobs()
    for name in names or ("poll",):
        declared.interval(name, seconds, note, [mark], catch_up="fire_all")
    plan: Callable[..., ReconcilePlan] = partial(
        plan_reconcile,
        declarations=declared.entries(),
        source="code",
        space="",
        declared_by="a process",
        booted_at=START,
        new_id=uuid7,
        tzdata_version="",
    )
    return lambda: crons.reconcile("code", "", lambda rows, now: plan(rows, now=now))


def planned(store: OrmJobStore, crons: OrmCronStore, cron: CronSnapshot) -> PlannedFiring:
    """Return what a process wants to do that has seen ``cron`` due."""
    plan = plan_firing(cron, crons.now(), catchup_cap=1000, misfire_grace=GRACE)
    jobs = [
        new_job(
            store,
            fn_path=cron.fn_path,
            due_at=cut(fire.due_at),
            next_run_at=crons.now(),
            args=cron.args,
            trigger=Trigger.CRON,
            cron_id=cron.id,
        )
        for fire in plan.fires
    ]
    return PlannedFiring(cron=cron, plan=plan, jobs=jobs)


def firing(store: OrmJobStore, crons: OrmCronStore, cron: CronSnapshot) -> Callable[[], bool]:
    """Return what a process does that has seen ``cron`` due."""
    made = planned(store, crons, cron)
    return lambda: crons.fire(made.cron, made.plan, made.jobs)


def firing_together(store: OrmJobStore, crons: OrmCronStore, *due: CronSnapshot) -> Callable[[], list[bool]]:
    """Return what a process does that has seen several crons due."""
    made = [planned(store, crons, cron) for cron in due]
    return lambda: list(crons.fire_together(made))


@pytest.fixture
def cron(crons: OrmCronStore, clock) -> CronSnapshot:
    """Give a cron that has been due three times."""
    reconciling(crons)()
    clock.advance(3 * MINUTE)
    [cron] = crons.due(limit=1)
    return cron


def accounts(cron: CronSnapshot) -> dict[str, Any]:
    """Return what the cron's row, its Fire rows and its jobs say was fired."""
    row = Cron.objects.get(pk=cron.id)
    return {
        "fired": row.fired,
        "missed": row.missed,
        "fires": list(
            Fire.objects.filter(cron=row, job__isnull=False).order_by("due_at").values_list("due_at", flat=True)
        ),
        "next": row.next_run_at,
    }


ALL_THREE = {
    "fired": 3,
    "missed": 0,
    "fires": [START + MINUTE, START + 2 * MINUTE, START + 3 * MINUTE],
    "next": START + 4 * MINUTE,
}


def after_a_move() -> Callable[[str], bool]:
    """Stop an actor before the statement that follows its first write of a cron."""
    seen: list[str] = []

    def stop(sql: str) -> bool:
        is_next = bool(seen)
        if sql.startswith("UPDATE") and "helisched_cron" in sql:
            seen.append(sql)
        return is_next

    return stop


def due_times(store) -> list[Any]:
    return [job.due_at for job in all_jobs(store)]


def test_of_two_that_saw_the_same_cron_due_one_fires_it(stage: Stage, store, crons, cron):
    first, second = (stage.about_to_write(firing(store, crons, cron)) for _ in range(2))
    first.go_on()
    second.go_on()
    assert sorted([first.result(), second.result()]) == [False, True]
    assert accounts(cron) == ALL_THREE
    assert due_times(store) == ALL_THREE["fires"]


def test_the_second_waits_to_learn_that_the_first_has_fired(stage: Stage, store, crons, cron):
    first = stage.holds_open(firing(store, crons, cron))
    second = stage.enter(firing(store, crons, cron)).waits()
    assert (first.finish(), second.result()) == (True, False)
    assert accounts(cron) == ALL_THREE
    assert due_times(store) == ALL_THREE["fires"]


def test_where_the_first_rolls_back_the_second_fires(stage: Stage, store, crons, cron):
    first = stage.holds_open(firing(store, crons, cron))
    second = stage.enter(firing(store, crons, cron)).waits()
    first.break_off()
    assert second.result() is True
    assert accounts(cron) == ALL_THREE
    assert due_times(store) == ALL_THREE["fires"]


def test_two_that_fire_the_same_crons_together_wait_for_one_another_and_do_not_deadlock(
    stage: Stage, store, crons, clock
):
    reconciling(crons, "one", "two")()
    clock.advance(3 * MINUTE)
    one, two = crons.due(limit=2)
    first = stage.enter(firing_together(store, crons, one, two), after_a_move()).stands()
    second = stage.enter(firing_together(store, crons, two, one)).waits()
    assert first.finish() == [True, True]
    assert second.result() == [False, False]
    assert accounts(one) == accounts(two) == ALL_THREE
    assert len(due_times(store)) == 6


def test_of_crons_that_are_fired_together_the_one_that_another_has_fired_is_left_out(stage: Stage, store, crons, clock):
    reconciling(crons, "one", "two")()
    clock.advance(3 * MINUTE)
    one, two = crons.due(limit=2)
    alone = stage.holds_open(firing(store, crons, one))
    together = stage.enter(firing_together(store, crons, one, two)).waits()
    assert alone.finish() is True
    assert together.result() == [False, True]
    assert accounts(one) == accounts(two) == ALL_THREE
    assert len(due_times(store)) == 6


def test_two_backfills_make_up_for_each_missed_occurrence_once(stage: Stage, store, crons, cron):
    assert crons.change(pause(cron, crons.now()))
    back = (START, crons.now())
    first = stage.holds_open(lambda: scheduler.crons.backfill("poll", *back).due)
    second = stage.enter(lambda: scheduler.crons.backfill("poll", *back).due).waits()
    assert list(first.finish()) == ALL_THREE["fires"]
    assert second.result() == ()
    row = crons.get(cron.id)
    assert (row.fired, row.missed) == (3, 0)
    assert sorted(due_times(store)) == ALL_THREE["fires"]


def test_a_firing_that_saw_the_cron_before_its_arguments_changed_is_refused(stage: Stage, store, crons, cron):
    fire = stage.about_to_write(firing(store, crons, cron))
    reconciling(crons, mark="b")()
    changed = crons.get(cron.id)
    # The same instant is due, and yet another cron than the one that was seen.
    assert changed.next_run_at == cron.next_run_at
    assert fire.finish() is False
    assert due_times(store) == []
    assert firing(store, crons, changed)()
    assert accounts(cron) == ALL_THREE
    assert [store.args_of(job.id)["args"] for job in all_jobs(store)] == [["b"]] * 3


def test_a_firing_that_saw_the_cron_before_two_edits_made_it_as_it_was_is_refused(stage: Stage, store, crons, cron):
    fire = stage.about_to_write(firing(store, crons, cron))
    reconciling(crons, mark="b")()
    reconciling(crons, mark="a")()
    assert fire.finish() is False
    assert firing(store, crons, crons.get(cron.id))()
    assert accounts(cron) == ALL_THREE


def test_a_firing_waits_for_a_reconcile_and_is_refused(stage: Stage, store, crons, cron):
    reconcile = stage.holds_open(reconciling(crons, seconds=40))
    fire = stage.enter(firing(store, crons, cron)).waits()
    assert reconcile.finish().dropped == 3
    assert fire.result() is False
    assert due_times(store) == []
    row = crons.get(cron.id)
    assert (row.fired, row.missed, row.next_run_at > crons.now()) == (0, 3, True)


def test_a_reconcile_waits_for_a_firing_and_drops_nothing_of_it(stage: Stage, store, crons, cron):
    fire = stage.holds_open(firing(store, crons, cron))
    reconcile = stage.enter(reconciling(crons, seconds=40)).waits()
    assert fire.finish() is True
    plan = reconcile.result()
    assert (len(plan.updates), plan.dropped) == (1, 0)
    row = crons.get(cron.id)
    assert (row.fired, row.missed, row.version) == (3, 0, cron.version + 2)
    assert due_times(store) == ALL_THREE["fires"]


def test_a_reconcile_that_waited_for_a_firing_which_is_undone_drops_what_is_overdue(stage: Stage, store, crons, cron):
    fire = stage.holds_open(firing(store, crons, cron))
    reconcile = stage.enter(reconciling(crons, seconds=40)).waits()
    fire.break_off()
    assert reconcile.result().dropped == 3
    row = crons.get(cron.id)
    assert (row.fired, row.missed) == (0, 3)
    assert due_times(store) == []


def test_two_processes_that_declare_a_new_cron_make_one_row(stage: Stage, crons):
    first = stage.holds_open(reconciling(crons))
    second = stage.enter(reconciling(crons)).waits()
    assert len(first.finish().inserts) == 1
    assert second.result().unchanged == ("poll",)
    assert Cron.objects.count() == 1


def test_two_processes_that_reconcile_the_same_change_write_it_once(stage: Stage, crons, cron):
    first = stage.holds_open(reconciling(crons, mark="b"))
    second = stage.enter(reconciling(crons, mark="b")).waits()
    assert len(first.finish().updates) == 1
    assert second.result().is_empty
    assert crons.get(cron.id).version == cron.version + 1


def test_old_and_new_code_that_reconcile_at_once_leave_no_cron_behind(stage: Stage, crons, cron):
    old = stage.about_to_write(reconciling(crons))
    new = stage.about_to_write(reconciling(crons, "renamed"))
    old.go_on()
    new.go_on()
    old.result()
    new.result()
    archived = dict(Cron.objects.values_list("name", "archived_at"))
    assert sorted(archived) == ["poll", "renamed"]
    assert None in archived.values()


def test_reads_of_due_crons_wait_for_nobody(stage: Stage, store, crons, cron):
    fire = stage.holds_open(firing(store, crons, cron))
    look = stage.enter(lambda: crons.due(limit=10))
    assert [seen.id for seen in look.result()] == [cron.id]
    fire.finish()
    assert crons.due(limit=10) == []
