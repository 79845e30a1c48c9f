from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from django_helisched.stores.memory import MemoryCronStore, MemoryJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START

if TYPE_CHECKING:
    from django_helisched.stores.base import CronStore, JobStore

KINDS = ["memory", pytest.param("orm", marks=pytest.mark.django_db(transaction=True))]


@dataclass(frozen=True)
class Stores:
    jobs: JobStore
    crons: CronStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, clock: ManualClock) -> Stores:
    """Give both stores of one kind; the ORM's work on the database that the settings select."""
    if request.param == "memory":
        jobs = MemoryJobStore(clock)
        return Stores(jobs, MemoryCronStore(clock, jobs))
    # Not at the top: the rest of this file needs no Django.
    from django_helisched.stores.orm import OrmCronStore, OrmJobStore

    return Stores(OrmJobStore("default", clock), OrmCronStore("default", clock))


@pytest.fixture
def store(stores: Stores) -> JobStore:
    return stores.jobs


@pytest.fixture
def crons(stores: Stores) -> CronStore:
    return stores.crons
