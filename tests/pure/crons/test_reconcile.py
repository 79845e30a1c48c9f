from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from itertools import count
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_helisched.crons.cron import CatchUp, CronSnapshot, FireOutcome, Overlap
from django_helisched.crons.reconcile import ReconcilePlan, plan_reconcile
from django_helisched.exceptions import InvalidOption
from tests.pure.crons.factories import DAILY, HOURLY, NOON, cron, declaration, every

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NOW = NOON + timedelta(minutes=30)
BOOT = NOON + timedelta(minutes=20)
NEWER = BOOT + timedelta(minutes=5)
KEY = "code::digest"


def plan(rows, declarations, **facts) -> ReconcilePlan:
    ids = count(100)
    defaults = {
        "source": "code",
        "space": "",
        "now": NOW,
        "declared_by": "new",
        "booted_at": BOOT,
        "new_id": lambda: UUID(int=next(ids)),
        "tzdata_version": "2026a",
    }
    return plan_reconcile(rows, declarations, **{**defaults, **facts})


def apply(rows, planned):
    changed = {update.id: update for update in planned.updates}
    kept = [
        replace(row, **changed[row.id].fields, version=row.version + 1) if row.id in changed else row for row in rows
    ]
    return [*kept, *planned.inserts]


def only_update(planned):
    (update,) = planned.updates
    assert planned.inserts == ()
    return update


def test_a_new_cron_starts_with_its_first_occurrence_after_now():
    declared = declaration(tz="Europe/Paris", args=(1,), kwargs={"a": [2]}, priority=5, queue="mail", max_failures=2)
    planned = plan([], [declared])
    (row,) = planned.inserts
    assert (row.next_run_at, row.anchor, row.counted_since) == (NOON + HOUR, NOW, NOW)
    assert (row.declared_by, row.declared_at, row.tzdata_version) == ("new", BOOT, "2026a")
    assert (row.version, row.fired, row.missed, row.args, row.kwargs) == (1, 0, 0, [1], {"a": [2]})
    assert (row.key, row.queue, row.priority, row.max_failures) == (KEY, "mail", 5, 2)


def test_a_cron_declared_at_the_instant_of_an_occurrence_starts_with_the_next():
    (row,) = plan([], [declaration()], now=NOON).inserts
    assert row.next_run_at == NOON + HOUR


def test_an_interval_fires_first_one_period_after_its_creation():
    now = NOW + timedelta(microseconds=1700)
    (row,) = plan([], [declaration(spec=every(seconds=90))], now=now).inserts
    assert row.anchor == NOW + timedelta(milliseconds=1)
    assert row.next_run_at == row.anchor + timedelta(seconds=90)


def test_an_interval_with_a_start_is_in_phase_with_it():
    (future,) = plan([], [declaration(spec=every(days=1), start=NOW + 5 * HOUR)]).inserts
    assert future.next_run_at == NOW + 5 * HOUR
    (past,) = plan([], [declaration(spec=every(days=1), start=NOW - 30 * HOUR)]).inserts
    assert past.next_run_at == NOW + 18 * HOUR


def test_a_cron_that_ends_before_it_begins_has_no_due_time():
    (row,) = plan([], [declaration(end=NOW + MINUTE)]).inserts
    assert row.next_run_at is None


def test_nothing_changed_writes_nothing_not_even_for_an_overdue_cron():
    overdue = cron(next_run_at=NOON)
    planned = plan([overdue], [declaration()])
    assert planned.is_empty
    assert planned.unchanged == ("digest",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("catch_up", CatchUp.SKIP),
        ("overlap", Overlap.SKIP),
        ("jitter", MINUTE),
        ("fn_path", "shop.jobs.other"),
        ("args", [1]),
        ("kwargs", {"kind": "short"}),
        ("queue", "mail"),
        ("priority", 7),
        ("max_failures", 9),
    ],
)
def test_what_is_not_the_schedule_changes_alone_and_an_overdue_occurrence_survives(name, value):
    update = only_update(plan([cron(next_run_at=NOON)], [declaration(**{name: value})]))
    assert update.fields == {name: value, "declared_by": "new", "declared_at": BOOT}
    assert (update.version, update.dropped) == (1, None)
    assert name in update.reason


def test_arguments_are_compared_as_json():
    row = cron(args=[1], kwargs={"b": 1, "a": 2})
    assert plan([row], [declaration(args=(1,), kwargs={"a": 2, "b": 1})]).is_empty
    assert only_update(plan([row], [declaration(args=(True,), kwargs={"a": 2, "b": 1})])).fields["args"] == [True]


@pytest.mark.parametrize(("change", "due"), [({"spec": DAILY}, NOON + 21 * HOUR), ({"tz": "Asia/Kolkata"}, NOW + HOUR)])
def test_a_new_schedule_or_zone_is_computed_from_now(change, due):
    update = only_update(plan([cron(last_fire_at=NOON, missed=3)], [declaration(**change)]))
    assert update.fields["next_run_at"] == due
    assert update.dropped is None
    assert "missed" not in update.fields


def test_overdue_occurrences_dropped_with_the_old_schedule_count_as_missed():
    row = cron(next_run_at=NOON - 2 * HOUR, missed=3)
    planned = plan([row], [declaration(spec=DAILY)])
    update = only_update(planned)
    assert (update.fields["missed"], planned.dropped) == (6, 3)
    assert (update.dropped.due_at, update.dropped.last_due_at) == (NOON - 2 * HOUR, NOON)
    assert (update.dropped.count, update.dropped.outcome) == (3, FireOutcome.MISSED)
    assert update.fields["next_run_at"] == NOON + 21 * HOUR


def test_an_old_schedule_that_cannot_be_read_counts_its_promised_occurrence():
    update = only_update(plan([cron(spec='{"kind":"cron","expr":"@reboot"}', next_run_at=NOON)], [declaration()]))
    assert update.dropped.count == 1
    assert update.fields["next_run_at"] == NOON + HOUR


def test_a_new_interval_is_anchored_at_now_and_a_zone_means_nothing_to_it():
    row = cron(spec=every(minutes=5), next_run_at=NOON)
    changed = only_update(plan([row], [declaration(spec=every(minutes=7))]))
    assert (changed.fields["anchor"], changed.fields["next_run_at"]) == (NOW, NOW + 7 * MINUTE)
    moved = only_update(plan([row], [declaration(spec=row.spec, tz="Asia/Tokyo")]))
    assert set(moved.fields) == {"tz", "declared_by", "declared_at"}


def test_a_removed_cron_is_archived_and_what_was_overdue_counts_as_missed():
    planned = plan([cron(next_run_at=NOON, fired=4)], [])
    update = only_update(planned)
    assert planned.archives == ("digest",)
    assert update.fields == {"archived_at": NOW, "next_run_at": None, "missed": 1}
    assert plan(apply([cron(next_run_at=NOON)], planned), []).is_empty


def test_a_cron_that_a_living_process_declares_is_not_archived():
    assert plan([cron()], [], declared_elsewhere={KEY: NOON}).is_empty


def test_a_cron_that_returns_is_the_same_row_and_starts_from_now():
    archived = cron(archived_at=NOON, next_run_at=None, fired=7, missed=2, anchor=NOON)
    update = only_update(plan([archived], [declaration()], now=NOW + 50 * HOUR))
    assert update.id == archived.id
    assert update.fields["archived_at"] is None
    assert update.fields["next_run_at"] == NOON + 51 * HOUR
    assert update.dropped is None
    assert "missed" not in update.fields


def test_enabling_starts_from_now_and_the_time_before_is_not_missed():
    disabled = cron(enabled=False, next_run_at=NOON - 100 * HOUR)
    update = only_update(plan([disabled], [declaration()]))
    assert update.fields["next_run_at"] == NOON + HOUR
    assert "missed" not in update.fields


def test_disabling_counts_what_was_overdue():
    update = only_update(plan([cron(next_run_at=NOON)], [declaration(enabled=False)]))
    assert (update.fields["enabled"], update.fields["missed"]) == (False, 1)


def test_an_operators_pause_is_not_touched():
    paused = cron(paused_at=NOON, paused_by="ada", pause_reason="SMTP down", next_run_at=NOON - HOUR)
    assert plan([paused], [declaration()]).is_empty
    update = only_update(plan([paused], [declaration(spec=DAILY)]))
    assert not {"paused_at", "paused_by", "pause_reason", "missed"} & set(update.fields)


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        ({}, {"start": NOON + 5 * HOUR}, NOON + 5 * HOUR),
        ({}, {"end": NOW}, None),
        ({"end": NOON, "next_run_at": None}, {"end": NOON + 9 * HOUR}, NOON + HOUR),
        ({"start": NOON + 5 * HOUR, "next_run_at": NOON + 5 * HOUR}, {"start": NOON}, NOON + HOUR),
        ({"next_run_at": NOON}, {"start": NOON + 5 * HOUR}, NOON + 5 * HOUR),
    ],
)
def test_a_new_window_is_respected_at_once(before, after, due):
    update = only_update(plan([cron(**before)], [declaration(**after)]))
    assert update.fields["next_run_at"] == due


def test_a_new_window_keeps_an_overdue_occurrence_that_lies_within():
    update = only_update(plan([cron(next_run_at=NOON)], [declaration(end=NOON + 9 * HOUR)]))
    assert "next_run_at" not in update.fields
    assert update.dropped is None


def test_rows_of_another_source_or_space_are_never_touched():
    others = [cron(source="operator"), cron(space="acme"), cron(source="provider:tenants")]
    assert plan(others, []).is_empty
    assert plan(others, [declaration(space="acme", spec=DAILY)]).is_empty
    (update,) = plan(others, [declaration(space="acme", spec=DAILY)], space="acme").updates
    assert update.fields["spec"] == DAILY


def test_old_code_does_not_take_back_what_living_new_code_declared():
    row = cron(spec=DAILY, declared_at=NEWER, declared_by="newest")
    planned = plan([row], [declaration()], declared_elsewhere={KEY: NEWER})
    assert planned.is_empty
    (refused,) = planned.refused
    assert (refused.name, refused.reason) == ("digest", "newest has newer code, which declares this cron otherwise")


@pytest.mark.parametrize("elsewhere", [{}, {KEY: NOON}, {"code::other": NEWER}])
def test_old_code_takes_over_when_the_newer_is_gone(elsewhere):
    row = cron(spec=DAILY, declared_at=NEWER, declared_by="newest")
    assert only_update(plan([row], [declaration()], declared_elsewhere=elsewhere)).fields["spec"] == HOURLY


def test_new_code_changes_what_living_old_code_declares():
    update = only_update(plan([cron(spec=DAILY)], [declaration()], declared_elsewhere={KEY: NOON}))
    assert update.fields["spec"] == HOURLY


def test_newer_time_zone_data_moves_a_due_time_that_is_yet_to_come():
    row = cron(next_run_at=NOON + 2 * HOUR, tzdata_version="2025b")
    assert only_update(plan([row], [declaration()])).fields == {
        "next_run_at": NOON + HOUR,
        "tzdata_version": "2026a",
    }


def test_newer_time_zone_data_leaves_an_overdue_occurrence():
    row = cron(next_run_at=NOON, tzdata_version="2025b")
    assert only_update(plan([row], [declaration()])).fields == {"tzdata_version": "2026a"}


def test_older_time_zone_data_moves_nothing():
    assert plan([cron(next_run_at=NOON + 2 * HOUR, tzdata_version="2099z")], [declaration()]).is_empty


def test_a_parked_row_is_tried_again():
    row = cron(next_run_at=None, last_error="Unknown time zone")
    assert only_update(plan([row], [declaration()])).fields == {"next_run_at": NOON + HOUR, "last_error": ""}


def test_a_bad_declaration_is_refused_alone():
    bad = [
        declaration(name="zone", tz="Mars/Base"),
        declaration(name="spec", spec='{"kind":"cron","expr":"60 * * * *"}'),
    ]
    planned = plan([cron(name="zone", id=UUID(int=7))], [*bad, declaration()])
    assert [row.name for row in planned.inserts] == ["digest"]
    assert planned.updates == ()
    assert [refused.name for refused in planned.refused] == ["zone", "spec"]
    assert planned.refused[0].reason == 'Unknown time zone "Mars/Base"'


def test_two_declarations_of_one_name_are_refused_with_both_places():
    both = [declaration(origin="a.py:1"), declaration(origin="b.py:2")]
    with pytest.raises(InvalidOption, match=r'"digest" is declared twice at a\.py:1 and at b\.py:2'):
        plan([], both)


declared = st.builds(
    declaration,
    name=st.sampled_from("abcd"),
    spec=st.sampled_from([HOURLY, DAILY, every(minutes=7), every(seconds=1)]),
    tz=st.sampled_from(["UTC", "Asia/Kolkata"]),
    catch_up=st.sampled_from(CatchUp),
    enabled=st.booleans(),
    kwargs=st.sampled_from([{}, {"a": 1}]),
    start=st.sampled_from([None, NOON - HOUR, NOON + 30 * HOUR]),
    end=st.sampled_from([None, NOON + HOUR / 2, NOON + 60 * HOUR]),
)
declarations = st.lists(declared, unique_by=lambda each: each.name)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    deploys=st.lists(st.tuples(declarations, st.timedeltas(timedelta(0), timedelta(days=3))), min_size=1, max_size=5),
)
def test_planning_again_after_a_plan_was_applied_plans_nothing(deploys):
    rows: list[CronSnapshot] = []
    now = NOON
    ids = count(1)
    for declared_now, later in deploys:
        now += later
        facts = {"now": now, "booted_at": now, "new_id": lambda: UUID(int=next(ids))}
        rows = apply(rows, plan(rows, declared_now, **facts))
        assert plan(rows, declared_now, **facts).is_empty
        by_name = {row.name: row for row in rows}
        assert len(by_name) == len(rows)
        for each in declared_now:
            assert by_name[each.name].archived_at is None
            assert by_name[each.name].spec == each.spec
        for row in rows:
            assert row.archived_at is None or row.name not in {each.name for each in declared_now}
            assert row.next_run_at is None or row.start is None or row.next_run_at >= row.start
            assert row.next_run_at is None or row.end is None or row.next_run_at <= row.end


def test_every_update_names_real_fields():
    names = {field.name for field in fields(cron())}
    planned = plan([cron(next_run_at=NOON)], [declaration(spec=DAILY, enabled=False)])
    assert set(only_update(planned).fields) <= names
