"""A process that is given over to a driver."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pytest

from django_helisched.driver import opening
from django_helisched.driver.config import configured

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def own_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the test's process back as it was."""
    monkeypatch.setattr(opening, "prepare_process", lambda alias: None)
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    gc.unfreeze()


def test_what_is_there_by_then_is_not_looked_through_for_garbage_any_more(own_process: None):
    gc.unfreeze()
    kept = [object()]
    assert gc.is_tracked(kept)
    opening.open_driver(configured())
    assert gc.get_freeze_count() > 10_000
    assert not any(found is kept for found in gc.get_objects())


def test_its_threads_take_turns_more_often(own_process: None):
    sys.setswitchinterval(0.005)
    opening.open_driver(configured())
    assert sys.getswitchinterval() == pytest.approx(opening.SWITCH_EVERY)
