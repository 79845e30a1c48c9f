from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from django_helisched import wiring
from django_helisched.stores.orm import OrmCronStore, OrmJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START
from tests.races import bodies
from tests.races.stage import staged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.races.stage import Stage


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def store(transactional_db: None, clock: ManualClock) -> OrmJobStore:
    return OrmJobStore("default", clock)


@pytest.fixture
def crons(transactional_db: None, clock: ManualClock) -> OrmCronStore:
    return OrmCronStore("default", clock)


@pytest.fixture(autouse=True)
def wired(store: OrmJobStore, crons: OrmCronStore) -> Iterator[None]:
    """Let enqueue use the stores of the test, and take away what bodies left."""
    with wiring.replaced(store, crons):
        yield
    bodies.runs.clear()


@pytest.fixture
def stage(store: OrmJobStore) -> Iterator[Stage]:
    """Give a stage that is empty again before the database is."""
    with staged() as stage:
        yield stage
