"""A process that forks children, each of which kills itself before or after one statement.

It has Django and the bodies loaded and no connection open, so that a child costs
a fork and a connect. One line of JSON on its input is one child; it answers with
the statement at which the child died, or null where it came to its end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import django
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Death:
    """Kills this process before or after its ``at``-th statement, a COMMIT being one, once it is armed."""

    def __init__(self, *, at: int, after: bool, last_words: int) -> None:
        self._left = at
        self._after = after
        self._last_words = last_words

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Count the statements of the block."""
        link: Any = connection
        commit = link._commit
        # Django sends a COMMIT past the wrappers of statements.
        link._commit = lambda: self._step("COMMIT", commit)
        try:
            with connection.execute_wrapper(self._watch):
                yield
        finally:
            link._commit = commit

    def _watch(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        return self._step(sql, lambda: execute(sql, params, many, context))

    def _step(self, sql: str, step: Callable[[], Any]) -> Any:
        self._left -= 1
        if self._left == 0 and not self._after:
            self._die(sql)
        result = step()
        if self._left == 0 and self._after:
            self._die(sql)
        return result

    def _die(self, sql: str) -> None:
        os.write(self._last_words, sql.encode())
        os.kill(os.getpid(), signal.SIGKILL)


def let_die(order: dict[str, Any]) -> str | None:
    """Fork the child of an order; return the statement at which it died, None where it did not."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os._exit(_live(order, writing))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        last_words = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return last_words
    if os.WEXITSTATUS(status):
        raise RuntimeError(f"the child of {order} failed by itself; see above")
    return None


def _live(order: dict[str, Any], last_words: int) -> int:
    from tests.crash.repertoire import OPERATIONS
    from tests.crash.world import World

    death = Death(at=order["at"], after=order["after"], last_words=last_words)
    try:
        with World(datetime.fromisoformat(order["now"])) as world:
            OPERATIONS[order["operation"]].act(world, death.armed())
    except BaseException:
        traceback.print_exc()
        return 1
    connection.close()
    return 0


def main() -> None:
    """Serve orders until the input ends."""
    django.setup()
    # What a child would otherwise import anew each time.
    from tests.crash import repertoire  # noqa: F401

    for line in sys.stdin:
        sys.stdout.write(json.dumps(let_die(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
