"""The words of a cron. Apart from its records, which a process that only has the models does without."""

from __future__ import annotations

from enum import StrEnum


class CatchUp(StrEnum):
    """What becomes of the occurrences that nobody fired in time."""

    SKIP = "skip"
    FIRE_ONCE = "fire_once"
    FIRE_ALL = "fire_all"


class Overlap(StrEnum):
    """What an occurrence does that finds an earlier job of its cron still live."""

    ALLOW = "allow"
    SKIP = "skip"
    CANCEL_PREVIOUS = "cancel_previous"


class FireOutcome(StrEnum):
    """What one due occurrence, or a run of them, became."""

    ENQUEUED = "enqueued"
    CAUGHT_UP = "caught_up"
    SKIPPED_OVERLAP = "skipped_overlap"
    MISSED = "missed"
    REFUSED = "refused"
