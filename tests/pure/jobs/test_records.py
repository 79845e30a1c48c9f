"""Records that are made quickly are the records that their own class makes."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from django_helisched.jobs.job import ClaimedJob, JobSnapshot, NewJob
from django_helisched.jobs.records import maker, remade

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NEEDED: dict[str, Any] = {
    "id": UUID(int=7),
    "fn_path": "shop.jobs.send",
    "created_at": NOON,
    "due_at": NOON,
    "next_run_at": NOON,
}


@pytest.mark.parametrize("record", [NewJob, JobSnapshot, ClaimedJob])
def test_what_is_made_equals_what_the_class_makes_and_is_of_it(record: type[Any]):
    values = {item.name: NEEDED.get(item.name, index) for index, item in enumerate(fields(record))}
    made = maker(record)(**values)
    assert type(made) is record
    assert made == record(**values)
    assert hash(made) == hash(record(**values))


def test_what_is_left_out_is_the_default_and_nothing_is_shared():
    make = maker(NewJob)
    one, other = make(**NEEDED), make(**NEEDED)
    assert one == NewJob(**NEEDED)
    assert one.kwargs is not other.kwargs
    assert one.first_hold == ""


def test_what_is_made_cannot_be_changed():
    job = maker(NewJob)(**NEEDED)
    with pytest.raises(FrozenInstanceError):
        job.queue = "mail"  # type: ignore[misc]


@pytest.mark.parametrize("wrong", [{"fn_path": "x"}, {**NEEDED, "nonsense": 1}])
def test_what_is_missing_or_unknown_is_a_type_error(wrong: dict[str, Any]):
    with pytest.raises(TypeError):
        maker(NewJob)(**wrong)


@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: int = 2


def test_what_takes_its_values_by_position_still_does():
    assert maker(Pair)(1) == Pair(1, 2)
    assert maker(Pair)(1, right=3) == Pair(1, 3)


@pytest.mark.parametrize("record", [NewJob, JobSnapshot])
def test_a_copy_differs_in_what_was_changed_and_cannot_be_changed_itself(record: type[Any]):
    values = {item.name: NEEDED.get(item.name, index) for index, item in enumerate(fields(record))}
    first = record(**values)
    copy = remade(first, {"queue": "mail"})
    assert (copy, first) == (record(**values | {"queue": "mail"}), record(**values))
    with pytest.raises(FrozenInstanceError):
        copy.queue = "other"
