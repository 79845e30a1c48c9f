"""The weather's ways to spoil a job, so that retries and lost workers can be watched.

Everything here is an ordinary failure of an ordinary function: the scheduler
knows nothing of storms.
"""

from __future__ import annotations

import os
import random
from threading import Event

from lighthouse.models import Storm

# Odds by level: calm, breeze, gale, hurricane.
SALT_ODDS = (0.0, 0.1, 0.25, 0.45)
SLEEP_ODDS = (0.0, 0.0, 0.1, 0.25)
FOG_ODDS = (0.25, 0.35, 0.5, 0.6)
NAP_SECONDS = 3.0

# Tells the demo that this death was ordered, and not a defect.
CABLE_CUT_EXIT_CODE = 86


class SaltInTheLens(Exception):
    """The lens is blind until somebody wipes it: the job fails and is tried again."""


def storm_level() -> int:
    """Give the present level, 0 to 3."""
    return Storm.objects.values_list("level", flat=True).filter(pk=1).first() or 0


def salt_the_lens(place: str) -> None:
    """Raise SaltInTheLens as often as the weather wills."""
    if random.random() < SALT_ODDS[storm_level()]:
        raise SaltInTheLens(f"salt in the lens at {place}")


def face_the_storm(place: str) -> None:
    """Dawdle, fail or neither, as the weather wills.

    For actions only: in a mutation the nap would hold a transaction open, and on
    SQLite with it every other writer.
    """
    if random.random() < SLEEP_ODDS[storm_level()]:
        Event().wait(NAP_SECONDS)
    salt_the_lens(place)


def fog_comes_in() -> bool:
    """Say whether a bank of fog reaches the tower just now."""
    return random.random() < FOG_ODDS[storm_level()]


def cut_the_cable() -> bool:
    """Kill this worker at once, as a power cut would; say False if the sea is too calm.

    ``os._exit`` runs no clean-up: leases, claims and open transactions stay
    behind as after a SIGKILL.
    """
    if storm_level() < Storm.Level.HURRICANE:
        return False
    os._exit(CABLE_CUT_EXIT_CODE)
