from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connections

from django_helisched import wiring
from django_helisched.driver import Driver, DriverConfig, InlineSeats
from django_helisched.stores.memory import MemoryCronStore, MemoryJobStore
from django_helisched.testing.clock import ManualClock
from tests.app import jobs as bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_helisched.driver.events import Event, What

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LEASE = timedelta(seconds=30)


class Events(list[Any]):
    """The events of a driver, as its observer got them."""

    def of(self, what: What) -> list[Any]:
        return [event for event in self if event.what is what]

    def whats(self) -> list[str]:
        return [event.what.value for event in self]


class Flaky:
    """A store whose verb raises what it is told to, so many times, and works otherwise."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._errors: dict[str, list[BaseException]] = {}
        self.calls: list[str] = []

    def fail(self, verb: str, *errors: BaseException) -> None:
        self._errors.setdefault(verb, []).extend(errors)

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self._store, verb)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(verb)
            waiting = self._errors.get(verb)
            if waiting:
                raise waiting.pop(0)
            return found(*args, **kwargs)

        return call if callable(found) else found


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def jobs(clock: ManualClock) -> MemoryJobStore:
    return MemoryJobStore(clock)


@pytest.fixture
def crons(clock: ManualClock, jobs: MemoryJobStore) -> MemoryCronStore:
    return MemoryCronStore(clock, jobs)


@pytest.fixture
def store(jobs: MemoryJobStore) -> Flaky:
    """Give the job store as the driver sees it."""
    return Flaky(jobs)


@pytest.fixture
def cron_store(crons: MemoryCronStore) -> Flaky:
    """Give the cron store as the driver sees it."""
    return Flaky(crons)


@pytest.fixture(autouse=True, scope="module")
def no_connection_left(django_db_blocker: Any) -> None:
    """Close what tests with a database left open: a driver would ask it whether it still answers."""
    with django_db_blocker.unblock():
        connections.close_all()


@pytest.fixture(autouse=True)
def wired(jobs: MemoryJobStore, crons: MemoryCronStore) -> Iterator[None]:
    """Let enqueue use the stores of the test, and take away what bodies left."""
    with wiring.replaced(jobs, crons):
        yield
    bodies.seen.clear()
    bodies.gates.clear()
    bodies.doors.clear()


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def make_driver(store: Any, cron_store: Any, events: Events) -> Iterator[Callable[..., Driver]]:
    """Make drivers on the test's stores; inline seats unless others are given, or ``own_seats`` by the config."""
    made: list[Driver] = []

    def make(
        *,
        seats: Any = None,
        own_seats: bool = False,
        observe: Callable[[Event], None] = events.append,
        **config: Any,
    ) -> Driver:
        config = {"worker_id": f"worker-{len(made)}", "lease": LEASE, **config}
        driver = Driver(
            store,
            cron_store,
            DriverConfig(**config),
            seats=None if own_seats else seats or InlineSeats(64),
            observe=observe,
            rng=lambda: 0.5,
        )
        made.append(driver)
        return driver

    yield make
    for gate in bodies.gates.values():
        gate.set()
    for door in bodies.doors.values():
        door.set()
    for driver in made:
        driver.drain()
        driver.close()


@pytest.fixture
def driver(make_driver: Callable[..., Driver]) -> Driver:
    return make_driver()
