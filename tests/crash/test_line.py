"""The connection on which a scheduler listens is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from tests.app.tasks import record
from tests.crash import server
from tests.crash.fleet import wait_until
from tests.crash.test_wakeup import PATIENT, done, ready

if TYPE_CHECKING:
    from tests.crash.fleet import Fleet


def test_after_its_line_was_cut_a_scheduler_is_told_again(fleet: Fleet):
    fleet.start("--json-logs", **PATIENT)
    ready(fleet)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
        ((backend,),) = cursor.fetchall()
    server.end(backend)
    wait_until(lambda: fleet.events("wakeup.lost"), "the loss is noticed")
    between = record.enqueue("between")
    ready(fleet, 2)
    after = record.enqueue("after")
    done(between, after)
