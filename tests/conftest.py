from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import django
import pytest
from django.db import connection

import django_helisched

if TYPE_CHECKING:
    from collections.abc import Iterator

# Before any room imports it, whichever is collected first.
pytest.register_assert_rewrite("django_helisched.testing.contract")

# Long enough for a busy server to answer a connect, short enough to learn of a missing one.
CONNECT_SECONDS = 5


def pytest_report_header() -> str:
    database = os.environ.get("HELISCHED_TEST_DB", "sqlite")
    place = Path(next(iter(django_helisched.__path__))).parent
    return f"helisched: {database}, Django {django.get_version()}, package from {place}"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "only_on(vendor, why=...): about one database; left out on the others.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, not skip, what is about another database: a skip would hide that something is missing here."""
    left_out = [item for item in items if connection.vendor not in only_on(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def only_on(item: pytest.Item) -> tuple[str, ...]:
    marker = item.get_closest_marker("only_on")
    return (connection.vendor,) if marker is None else marker.args


@pytest.fixture(scope="session")
def reachable_database() -> Iterator[None]:
    """Skip on a laptop without the server; with CI set, a missing server is an error."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        # A write-ahead log left by a killed run would be replayed into the new file.
        names = (settings["NAME"], settings["TEST"]["NAME"])
        remove_sqlite_files(*names)
        yield
        remove_sqlite_files(*names)
        return
    refusal = connect_refusal(settings["HOST"], int(settings["PORT"]))
    if refusal and os.environ.get("CI"):
        pytest.fail(refusal, pytrace=False)
    if refusal:
        pytest.skip(refusal)
    yield


@pytest.fixture(scope="session")
def django_db_setup(reachable_database: None, django_db_setup: None) -> None:
    """Make pytest-django's database, once it is known that there is a server to make it on."""


@pytest.fixture(scope="session")
def child_env(django_db_setup: None) -> dict[str, str]:
    """Give the environment in which a child process meets this run's test database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "HELISCHED_TEST_NAME": str(connection.settings_dict["NAME"]),
    }


def connect_refusal(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        return f"The {connection.vendor} server at {host}:{port} does not answer: {error}"
    return ""


def remove_sqlite_files(*names: str) -> None:
    for name in names:
        for tail in ("", "-journal", "-shm", "-wal"):
            Path(name + tail).unlink(missing_ok=True)
