"""What a process does when it is killed, and what must have become of it in the end.

Each operation says what is there before it (``prepare``), what the process does
that dies (``act``), what somebody does who got no answer from it (``again``), and
what is to be found once the others have done their work (``audit``): the same,
wherever it died.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.crash.world import World

Armed = AbstractContextManager[None]
DEAD = "the worker that died"


class Operation:
    """What happens, and how it must end."""

    ends = 1  # terminal transitions of each job, and so callbacks
    is_one_statement = False  # on some database, and so without a COMMIT

    def prepare(self, world: World) -> None:
        """Make what is there before."""

    def act(self, world: World, armed: Armed) -> None:
        """Do it, and die inside ``armed``."""
        raise NotImplementedError

    def again(self, world: World) -> None:
        """Do what a person or a program does that never got the answer."""

    def recover(self, world: World) -> None:
        """Do what other processes do all the time."""
        world.recover()

    def audit(self) -> None:
        """Check the end."""
        raise NotImplementedError
