"""The jobs, declared with the decorator of the peer that this process is about."""

from __future__ import annotations

import asyncio
import time

from django.db import connection

from benchmarks.app import marks
from benchmarks.peers import this_peer

PAUSE = 0.001  # seconds of the job that waits

_action = this_peer().decorator(writes=False)
_writer = this_peer().decorator(writes=True)


@_action
def noop(number: int) -> None:
    marks.mark()


@_action
def pause(number: int) -> None:
    time.sleep(PAUSE)  # noqa: TID251  # the wait is the work
    marks.mark()


@_writer
def write(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO bench_row (number) VALUES (%s)", [number])
    marks.mark()


@_action
def stamp(number: int) -> None:
    marks.stamp(number)


if this_peer().has_async:

    @_action
    async def pause_async(number: int) -> None:
        await asyncio.sleep(PAUSE)
        marks.mark()
