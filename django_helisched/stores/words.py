"""What the processes on one database say to each other: look for work, or hear of a cancel.

A word tells nothing that the tables do not tell, so that a lost or a forged one
costs a look at most.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass

LOOK = "look"  # something is due sooner than you know
CANCEL = "cancel"  # something that runs is to stop
TEST = "test"  # whoever says it wants to hear it

# One process says a word once in so many seconds, at the beginning of them. Whoever hears it looks
# again when they are over: what was stored meanwhile was stored in silence.
SILENCE = 0.010

_SPELLING = re.compile(r"(look|cancel|test) ([0-9a-f.]{1,40})", re.ASCII)
_TOKEN = secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class Word:
    """One word, and the process that said it."""

    kind: str
    speaker: str


def this_process() -> str:
    """Return what tells this process from all others, a forked child from its parent too."""
    return f"{os.getpid():x}.{_TOKEN}"


def spelled(kind: str, *, speaker: str = "") -> str:
    """Return the word as ``speaker`` says it, or this process."""
    return f"{kind} {speaker or this_process()}"


def understood(text: str) -> Word | None:
    """Return the word that ``text`` spells; None for anything else."""
    found = _SPELLING.fullmatch(text)
    return None if found is None else Word(found[1], found[2])
