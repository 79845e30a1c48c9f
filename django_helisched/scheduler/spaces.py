"""Whole spaces of crons: replaced through code, or derived anew from what is declared."""

from __future__ import annotations

import logging
import os
import socket
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from django_helisched import conf, wiring
from django_helisched.crons.options import MAX_SPACE, checked_name
from django_helisched.crons.providers import in_space
from django_helisched.crons.reconcile import ReconcilePlan, plan_reconcile
from django_helisched.crons.wall_clock import tzdata_version
from django_helisched.exceptions import InvalidOption
from django_helisched.jobs.ids import uuid7
from django_helisched.scheduler.checking import check_function
from django_helisched.scheduler.declarations import find_declarations
from django_helisched.scheduler.reconciling import Declarer, Reconciled, Reconciling
from django_helisched.stores.clock import elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django_helisched.crons.cron import CronDeclaration, CronSnapshot
    from django_helisched.crons.providers import Entries

logger = logging.getLogger("django_helisched.scheduler")

API = "api"
LEASES = 3  # without a report for so long a worker counts as gone

_LOADED = elapsed()  # this process's code is as old as this


def put_schedules(space: str, entries: Entries) -> ReconcilePlan:
    """Make the crons of one space, with the source "api", exactly ``entries``; return what was written.

    ``entries`` is a list made by ``cron_jobs()``, or any iterable of declarations. A cron that
    is not among them is archived; an unchanged one keeps its due time; counts stay. One
    transaction: a bad entry raises InvalidOption, UnknownFunction or InvalidArguments, and
    nothing is written. Other spaces and other sources are never touched.
    """
    checked_name("space", space, limit=MAX_SPACE, blank=True)
    declared = in_space(entries, source=API, space=space)
    for entry in declared:
        check_function(entry)
    plan = wiring.cron_store().reconcile(API, space, partial(_plan, space, declared))
    wiring.wake_on_commit()
    return plan


def reconcile(space: str | None = None) -> Reconciled:
    """Make the rows equal to what code and its providers declare, for one space or for all.

    Call it when the data changed that a provider derives crons from. What fails is logged, told
    in ``failed``, and harms only its own space. Raises InvalidOption where the project has no
    list of crons at all: nothing is known then, and nothing is archived.
    """
    declared = find_declarations()
    if declared is None:
        raise InvalidOption(
            "This project has no cron_jobs() list, so that nothing can be reconciled. "
            "Declare one, even an empty one: crons = cron_jobs() in the crons.py of an app."
        )
    alive_within = LEASES * conf.get_settings().lease
    round_ = Reconciling(wiring.job_store(), wiring.cron_store(), _this_process(), alive_within=alive_within)
    done = round_.apply(declared, space=space)
    for text in done.notices:
        logger.warning("%s", text)
    wiring.wake_on_commit()
    return done


def _plan(
    space: str, declared: Sequence[CronDeclaration], rows: Sequence[CronSnapshot], now: datetime
) -> ReconcilePlan:
    return plan_reconcile(
        rows,
        declared,
        source=API,
        space=space,
        now=now,
        declared_by=API,
        booted_at=now,
        new_id=uuid7,
        tzdata_version=tzdata_version(),
    )


def _this_process() -> Declarer:
    booted_at = wiring.job_store().now() - timedelta(seconds=elapsed() - _LOADED)
    return Declarer(name=f"{socket.gethostname()}:{os.getpid()}", booted_at=booted_at)
