"""One chaos run, from the first process to the verdict."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from django.db import connection

from django_helisched.models import Job
from tests.chaos.audit import TERMINAL, breaches
from tests.chaos.crew import Crew
from tests.chaos.evidence import gather
from tests.chaos.figures import late, lines
from tests.chaos.storm import Storm
from tests.chaos.story import Story
from tests.crash.fleet import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FINISHERS = 2  # processes that run what is left
FINISHED_WITHIN = 120.0  # seconds


def chaos(
    env: Mapping[str, str], directory: Path, *, seconds: float, seed: int, slack: float = 0, size: int = 8
) -> tuple[list[str], list[str]]:
    """Let a fleet work under fire for so long, let it finish, and return the figures and the breaches."""
    rng, story = random.Random(seed), Story()
    crew = Crew(env, directory, size, rng, story)
    try:
        crew.start()
        Storm(crew, rng, story).rage(seconds)
        crew.drain_all()
        finish(crew, story)
    except AssertionError as error:
        story.surprises.append(f"the fleet did not finish: {error}")
    finally:
        crew.kill_rest()
    found = gather(directory)
    one_writer = not connection.features.has_select_for_update
    return list(lines(story, found)), breaches(story, found) + late(story, found, slack=slack, one_writer=one_writer)


def finish(crew: Crew, story: Story) -> None:
    """Run what is left, without the crons, which never end."""
    before = story.counts["terms"]
    crew.start("--no-crons", size=FINISHERS)
    wait_until(lambda: not Job.objects.exclude(state__in=TERMINAL).exists(), "every job has ended", FINISHED_WITHIN)
    crew.drain_all()
    story.counts["terms"] = before
