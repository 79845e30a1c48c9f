"""SIGKILL before and after every statement of every verb that writes; the others come to the same end."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from django_helisched.testing.contract import START
from tests.crash.fleet import wait_until

for room in ("world", "job_operations", "ending_operations", "cron_operations", "prune_operations"):
    pytest.register_assert_rewrite(f"tests.crash.{room}")
from tests.crash.repertoire import OPERATIONS  # noqa: E402
from tests.crash.world import World, audit, clear  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.crash.operation import Operation


@pytest.fixture(scope="module")
def die(child_env: dict[str, str]) -> Iterator[Callable[..., str | None]]:
    """Give a function that lets a process die at a statement and returns it, or None where the process survived."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.dying"],
        env=child_env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )

    def order(**order: Any) -> str | None:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        assert answer, "the process that forks has ended; see its output"
        last_words: str | None = json.loads(answer)
        return last_words

    with server:
        yield order
        server.stdin.close()  # type: ignore[union-attr]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_a_kill_at_any_statement_changes_nothing_about_the_end(die, name: str, after: bool):
    killed: list[str] = []
    for number in itertools.count(1):
        clear()
        with World(START) as world:
            OPERATIONS[name].prepare(world)
            now = world.clock.now().isoformat()
            statement = die(operation=name, at=number, after=after, now=now)
            wait_until(alone, "the server has noticed that the process is gone")
            try:
                _come_to_the_end(OPERATIONS[name], world)
            except AssertionError as error:
                place = f"{'after' if after else 'before'} statement {number}: {statement}"
                raise AssertionError(f"killed {place}") from error
        if statement is None:
            break
        killed.append(statement)
    assert killed
    assert (len(killed) > 1 and "COMMIT" in killed) or OPERATIONS[name].is_one_statement


def _come_to_the_end(operation: Operation, world: World) -> None:
    operation.again(world)
    operation.recover(world)
    operation.audit()
    audit(operation.ends)


def alone() -> bool:
    """Tell whether no other session works on this database: the locks of a killed one are gone with it."""
    if not connection.features.has_select_for_update:
        return True  # a file's locks end with the process
    query = (
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        if connection.features.has_select_for_no_key_update
        else "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return bool(cursor.fetchone()[0] == 0)
