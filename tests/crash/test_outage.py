"""The database goes away: connections die, are refused, idle out, take no writes; and it comes back."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from django_helisched import wiring
from django_helisched.functions.call import Call, enqueue_calls
from django_helisched.models import Job
from tests.app.models import Ledger
from tests.app.tasks import append_and_wait, closed, record, record_and_wait
from tests.crash import server
from tests.crash.fleet import LEASE, terminate, wait_until
from tests.crash.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.crash.fleet import Fleet

OUTAGE = float(os.environ.get("HELISCHED_OUTAGE", "5"))  # seconds
BACK_WITHIN = 6.0  # seconds from the first accepted connection to work as usual: the longest rest, and a poll
SEATS = 2
SILENT_LEASE = 7.5  # seconds; a beat every two and a half, while the server closes what was idle for two


@pytest.fixture
def proxy(fleet: Fleet) -> Iterator[Proxy]:
    """Give the relay behind which the schedulers of the fleet find their server."""
    settings = connection.settings_dict
    proxy = Proxy(settings["HOST"], int(settings["PORT"]))
    prefix = f"HELISCHED_TEST_{os.environ['HELISCHED_TEST_DB'].upper()}"
    fleet.env |= {f"{prefix}_HOST": "127.0.0.1", f"{prefix}_PORT": str(proxy.port)}
    yield proxy
    proxy.cut()


def states(*jobs: Job) -> set[str]:
    return set(Job.objects.filter(pk__in=[job.pk for job in jobs]).values_list("state", flat=True))


def outcomes(job: Job) -> list[str]:
    return [attempt.outcome for attempt in wiring.job_store().attempts_of(job.pk)]


def wait_for(seconds: float) -> None:
    """Return once so much time has passed for the database."""
    store = wiring.job_store()
    begun = store.now()
    wait_until(lambda: (store.now() - begun).total_seconds() > seconds, f"{seconds} s have passed", 2 * seconds + 10)


def run_some(name: str, count: int = 2 * SEATS) -> list[Job]:
    jobs = enqueue_calls([Call(record, [f"{name}.{number}"]) for number in range(count)])
    wait_until(lambda: states(*jobs) == {"success"}, f"the jobs of {name} are done")
    return jobs


def test_an_outage_stops_no_running_job_is_said_once_and_is_waited_out(fleet: Fleet, proxy: Proxy):
    action = append_and_wait.using(on_complete=closed, context="action").enqueue("a")
    mutation = record_and_wait.using(on_complete=closed, context="mutation").enqueue("m")
    process = fleet.start("--json-logs", LEASE=2)
    wait_until(lambda: fleet.has("a.1") and fleet.has("m.1"), "both bodies stand in their middle")
    proxy.cut()
    later = record.enqueue("later")
    wait_until(lambda: fleet.events("database.lost") and fleet.events("heartbeat.lost"), "both loops have noticed")
    wait_for(OUTAGE / 2)
    proxy.hang_up()
    fleet.let_go()
    wait_for(OUTAGE / 2)
    assert process.poll() is None
    tries = proxy.refused
    proxy.relay()
    wait_until(lambda: states(action, later) == {"success"}, "the outage is over for the jobs", BACK_WITHIN)
    wait_until(lambda: states(mutation) == {"success"}, "the mutation is done again")
    wait_until(lambda: Ledger.objects.count() == 4, "every end has called back")
    assert terminate(process) == 0

    assert (fleet.lines(), outcomes(action)) == (["a 1"], ["success"])
    assert (outcomes(mutation), outcomes(later)) == (["failed", "success"], ["success"])
    assert sorted(Ledger.objects.values_list("marker", flat=True)) == [
        "action success",
        "later",
        "m",
        "mutation success",
    ]
    for what in ("database.lost", "database.back", "heartbeat.lost", "heartbeat.back"):
        assert len(fleet.events(what)) == 1, what
    # Half the time was counted. The heartbeat asks three times a second with this lease, the others less and less
    # often, and a client library may ask twice before it gives up; a loop without rest asks a hundred times as often.
    assert 0 < tries < 20 * OUTAGE
    assert fleet.events("job.swept", "job.lost", "job.unsettled", "log") == []


def test_a_scheduler_that_is_cut_off_for_longer_than_its_lease_changes_nothing_any_more(fleet: Fleet, proxy: Proxy):
    job = append_and_wait.using(on_complete=closed, context="action").enqueue("a")
    cut_off = fleet.start("--json-logs")
    wait_until(lambda: fleet.has("a.1"), "the body runs")
    proxy.cut()
    fleet.env = {name: text for name, text in fleet.env.items() if not name.endswith(("_HOST", "_PORT"))}
    other = fleet.start("--json-logs")
    wait_until(lambda: states(job) == {"success"}, "another scheduler has run it")
    fleet.let_go()
    proxy.relay()
    wait_until(lambda: fleet.events("job.lost"), "the late end is dropped and logged")
    wait_until(Ledger.objects.exists, "the end has called back")
    assert [terminate(process) for process in (cut_off, other)] == [0, 0]
    assert (fleet.lines(), outcomes(job)) == (["a 1", "a 2"], ["lost", "success"])
    assert Ledger.objects.count() == 1


def test_each_connection_that_dies_costs_at_most_the_job_on_it(fleet: Fleet):
    process = fleet.start("--json-logs", "--threads", str(SEATS))
    jobs = run_some("before")
    threads = len(server.others())
    assert threads >= 3
    for place in range(threads):
        # Whose it is differs; that each loop and each seat goes on is told by what follows.
        alive = server.others()
        server.end(alive[place % len(alive)])
        jobs += run_some(f"after {place}")
    long = append_and_wait.enqueue("long")
    wait_until(lambda: fleet.has("long.1"), "the body runs")
    wait_for(3 * LEASE)
    fleet.let_go()
    wait_until(lambda: states(long) == {"success"}, "the heartbeat is alive")
    assert terminate(process) == 0

    assert Ledger.objects.count() == len(jobs)
    assert outcomes(long) == ["success"]
    assert [outcomes(job)[-1] for job in jobs] == ["success"] * len(jobs)
    assert sum(len(outcomes(job)) - 1 for job in jobs) <= threads
    assert fleet.events("job.swept", "job.lost", "job.unsettled", "log") == []


def test_connections_that_the_server_closes_for_being_idle_cost_nobody_anything(fleet: Fleet):
    fleet.env["HELISCHED_TEST_OPTIONS"] = json.dumps(server.IDLE_TIMEOUT[connection.vendor])
    process = fleet.start("--json-logs", "--threads", str(SEATS), LEASE=SILENT_LEASE)
    run_some("before")
    seated = len(server.others())
    wait_until(lambda: len(server.others()) <= seated - SEATS, "the server has closed the seats' connections")
    jobs = run_some("after")
    long = append_and_wait.enqueue("long")
    wait_until(lambda: fleet.has("long.1"), "the body runs")
    wait_for(SILENT_LEASE)
    fleet.let_go()
    wait_until(lambda: states(long) == {"success"}, "the job is done")
    assert terminate(process) == 0
    assert [outcomes(job) for job in [*jobs, long]] == [["success"]] * (len(jobs) + 1)
    assert fleet.events("database.lost", "heartbeat.lost", "job.swept", "job.unsettled", "log") == []


def test_a_server_that_takes_no_writes_is_recognised_and_waited_out(fleet: Fleet):
    with server.plain_user(fleet.env):
        process = fleet.start("--json-logs", "--threads", str(SEATS))
        run_some("before")
        with server.read_only(fleet.env):
            waiting = record.enqueue("waiting")
            wait_until(
                lambda: fleet.events("database.lost") and fleet.events("heartbeat.lost"), "both loops have noticed"
            )
            wait_for(3 * LEASE)
            assert states(waiting) == {"pending"}
            assert process.poll() is None
        wait_until(lambda: states(waiting) == {"success"}, "the job is done", 2 * BACK_WITHIN)
        run_some("after")
        assert terminate(process) == 0
    assert outcomes(waiting) == ["success"]
    assert [len(fleet.events(what)) for what in ("database.lost", "database.back", "heartbeat.lost")] == [1, 1, 1]
    # Whichever loop met the refusal first, and not the end of its old connection.
    assert any("takes no writes" in lost["text"] for lost in fleet.events("database.lost", "heartbeat.lost"))
    assert fleet.events("job.swept", "job.lost", "job.unsettled", "log") == []
