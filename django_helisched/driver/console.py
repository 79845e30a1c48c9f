"""Where the lines of a driver go when the project has not said so."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django_helisched.driver.json_lines import JsonFormatter
from django_helisched.driver.lines import LineFormatter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

    from django.core.management.base import OutputWrapper

    Stream = TextIO | OutputWrapper

LOGGER = "django_helisched"

# What -v asks for: warnings, lines for every job, lost races too.
_LEVELS = {0: logging.WARNING, 1: logging.INFO}


@contextmanager
def shown(stream: Stream, *, as_json: bool = False, verbosity: int = 1, process: int | None = None) -> Iterator[bool]:
    """Write the package's log records to ``stream`` inside the block, and tell whether that is so.

    ``process`` is this process's number among those of one supervisor.

    A project that gives the logger ``django_helisched`` a handler of its own
    keeps it, alone.
    """
    logger = logging.getLogger(LOGGER)
    if logger.handlers:
        yield False
        return
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(process) if as_json else lines_for(stream, process=process))
    before = logger.level
    logger.setLevel(_LEVELS.get(verbosity, logging.DEBUG))
    logger.addHandler(handler)
    try:
        yield True
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def lines_for(stream: Stream, environ: Mapping[str, str] = os.environ, *, process: int | None = None) -> LineFormatter:
    """Return lines as ``stream`` can show them: colour on a terminal, ASCII where it is not UTF-8."""
    return LineFormatter(colour=has_colour(stream, environ), ascii_only=is_ascii(stream), process=process)


def has_colour(stream: Stream, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether to colour: never with NO_COLOR, always with FORCE_COLOR, else on a terminal."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (stream.isatty() and environ.get("TERM") != "dumb")


def is_ascii(stream: Stream) -> bool:
    """Tell whether symbols would come out as something else."""
    encoding = getattr(stream, "encoding", None) or "ascii"
    return not encoding.lower().replace("-", "").startswith("utf")
