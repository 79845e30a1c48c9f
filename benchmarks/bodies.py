"""The jobs that throughput.py runs."""

from __future__ import annotations

import asyncio
import time

from django_helisched import action, mutation
from tests.app.models import Ledger


@action
def noop() -> None: ...


@action
async def noop_async() -> None: ...


@action
def wait() -> None:
    time.sleep(0.001)  # noqa: TID251  # what is measured


@action
async def wait_async() -> None:
    await asyncio.sleep(0.001)


@action
async def wait_a_second() -> None:
    await asyncio.sleep(1)


@mutation
def write() -> None:
    Ledger.objects.create(marker="x")
