"""runscheduler --processes: whoever is killed, the others go on and nothing runs twice."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import connection

from django_helisched.models import Attempt, Job, Worker
from tests.app.models import Ledger
from tests.app.tasks import append_and_wait, record, write_and_stand_still
from tests.crash.fleet import kill, terminate, wait_until

if TYPE_CHECKING:
    import subprocess

    from tests.crash.fleet import Fleet

TWO = ("--processes", "2", "--threads", "1", "--worker-id", "w", "--json-logs")


def alive() -> list[Worker]:
    """Return the rows of the processes that have reported themselves and not stopped."""
    return list(Worker.objects.exclude(state="stopped").order_by("started_at", "id"))


def start_two(fleet: Fleet, *arguments: str, **settings: Any) -> subprocess.Popen[str]:
    supervisor = fleet.start(*TWO, *arguments, **settings)
    wait_until(lambda: len(alive()) == 2, "both processes have reported themselves")
    return supervisor


def are_fresh(old: set[str]) -> bool:
    """Tell whether two processes are alive and neither is an old one, both as of one look."""
    ids = {worker.id for worker in alive()}
    return len(ids) == 2 and not ids & old


def all_done(fn_path: str, count: int) -> bool:
    return Job.objects.filter(fn_path=fn_path, state="success").count() == count


def get(port: int, path: str) -> tuple[int, dict[str, Any]]:
    """Ask a probe; 0 where nobody listens yet."""
    probe = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        probe.request("GET", path)
        response = probe.getresponse()
        return response.status, json.loads(response.read())
    except OSError:
        return 0, {}
    finally:
        probe.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def test_a_process_that_is_killed_is_started_again_and_its_job_runs_once_more(fleet: Fleet):
    supervisor = start_two(fleet)
    job = append_and_wait.enqueue("killed")
    wait_until(lambda: fleet.has("killed.1"), "the job runs")
    job.refresh_from_db()
    victim = Worker.objects.get(id=job.lease_holder)
    os.kill(victim.pid, signal.SIGKILL)
    wait_until(lambda: all_done(append_and_wait.path, 1), "another process has run it")
    (lost,) = fleet.events("process.lost")
    assert "was ended by SIGKILL" in lost["text"]
    assert list(Attempt.objects.order_by("number").values_list("outcome", flat=True)) == ["lost", "success"]
    wait_until(lambda: len(fleet.events("process.started")) == 3, "a fresh one has been started")
    number = victim.id.partition(":")[0]
    fresh = Worker.objects.filter(id__startswith=f"{number}:").exclude(pk=victim.pk)
    wait_until(fresh.exists, "the fresh one has the number of the old one")
    assert terminate(supervisor) == 0


def test_when_the_supervisor_is_killed_its_processes_finish_what_they_run_and_end(fleet: Fleet):
    supervisor = start_two(fleet)
    append_and_wait.enqueue("orphan")
    wait_until(lambda: fleet.has("orphan.1"), "the job runs")
    kill(supervisor)
    wait_until(lambda: len(alive()) == 1, "the idle process has ended")
    record.enqueue("nobody runs this")
    fleet.let_go()
    wait_until(lambda: not alive(), "the other one has ended, too")
    assert all_done(append_and_wait.path, 1)
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"success"}
    assert not Ledger.objects.exists()
    assert "The supervisor is gone: finishing what runs." in {event["text"] for event in fleet.events("driver.notice")}


def test_sigterm_to_all_of_a_group_lets_jobs_finish_and_everybody_exit_zero(fleet: Fleet):
    supervisor = start_two(fleet)
    append_and_wait.enqueue("last")
    wait_until(lambda: fleet.has("last.1"), "the job runs")
    # As systemd does it: everybody gets one, and the supervisor passes its own on.
    for worker in alive():
        os.kill(worker.pid, signal.SIGTERM)
        os.kill(worker.pid, signal.SIGTERM)
    supervisor.send_signal(signal.SIGTERM)
    wait_until(lambda: Worker.objects.filter(state="draining").exists(), "it drains")
    fleet.let_go()
    assert supervisor.wait(60) == 0
    assert all_done(append_and_wait.path, 1)
    assert not alive()
    assert not fleet.events("process.lost")


def test_a_second_sigterm_leaves_at_once_and_no_process_behind(fleet: Fleet):
    supervisor = start_two(fleet)
    pids = [worker.pid for worker in alive()]
    append_and_wait.enqueue("cut")
    wait_until(lambda: fleet.has("cut.1"), "the job runs")
    supervisor.send_signal(signal.SIGTERM)
    wait_until(lambda: fleet.events("driver.draining"), "it drains")
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(60) == 143
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    fleet.start("--worker-id", "other")
    wait_until(lambda: all_done(append_and_wait.path, 1), "another worker has run it when the lease had lapsed")


def test_processes_that_have_done_their_share_are_replaced(fleet: Fleet):
    for number in range(7):
        record.enqueue(f"job {number}")
    supervisor = start_two(fleet, "--max-tasks", "2")
    wait_until(lambda: all_done(record.path, 7), "all jobs are done")
    wait_until(lambda: len(fleet.events("process.ended")) >= 3, "three processes have done their share")
    assert not fleet.events("process.lost")
    assert Ledger.objects.count() == 7
    assert terminate(supervisor) == 0


def test_a_process_that_is_worn_out_is_replaced_at_once(fleet: Fleet):
    job = write_and_stand_still.enqueue("m")
    supervisor = fleet.start("--processes", "1", "--threads", "1", "--json-logs", TIMEOUT_GRACE=0.2)
    wait_until(lambda: all_done(write_and_stand_still.path, 1), "a fresh process has done it")
    assert list(Attempt.objects.filter(job=job).order_by("number").values_list("outcome", flat=True)) == [
        "timeout",
        "success",
    ]
    (ended,) = fleet.events("process.ended")
    assert ended["text"] == "Process 1 is worn out by bodies that do not stop; a fresh one takes its place."
    assert terminate(supervisor) == 0
    assert not fleet.events("process.lost")


def test_a_hang_up_replaces_the_processes_one_by_one(fleet: Fleet):
    supervisor = start_two(fleet)
    old = {worker.id for worker in alive()}
    supervisor.send_signal(signal.SIGHUP)
    wait_until(lambda: are_fresh(old), "both are fresh")
    started = fleet.events("process.started", "process.ended")
    assert [event["event"] for event in started[2:]] == ["process.ended", "process.started"] * 2
    assert terminate(supervisor) == 0


def test_probes_tell_of_a_process_that_stands_still(fleet: Fleet):
    port = free_port()
    file = fleet.directory / "health"
    supervisor = start_two(fleet, "--health-port", str(port), "--health-file", str(file))
    wait_until(lambda: "2 of 2 processes ready" in get(port, "/ready")[1].get("status", ""), "both are ready")
    assert get(port, "/live")[0] == 200
    wait_until(file.exists, "the file is there")
    still = alive()[0]
    os.kill(still.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: get(port, "/live")[0] == 503, "it is told that one stands still")
        assert "has not been heard of" in get(port, "/live")[1]["status"]
        record.enqueue("the other one works")
        wait_until(lambda: all_done(record.path, 1), "the other one works")
    finally:
        os.kill(still.pid, signal.SIGCONT)
    wait_until(lambda: get(port, "/ready")[0] == 200, "all is well again")
    assert terminate(supervisor) == 0
    assert not file.exists()


def test_one_process_answers_probes_by_itself_and_drains_unready(fleet: Fleet):
    port = free_port()
    scheduler = fleet.start("--health-port", str(port))
    wait_until(lambda: get(port, "/ready")[0] == 200, "it is ready")
    append_and_wait.enqueue("slow")
    wait_until(lambda: get(port, "/ready")[1].get("in_flight") == 1, "the job is counted")
    scheduler.send_signal(signal.SIGTERM)
    wait_until(lambda: get(port, "/ready")[0] == 503, "it is not ready while it drains")
    assert get(port, "/live")[0] == 200
    fleet.let_go()
    assert scheduler.wait(60) == 0


def test_systemd_hears_of_the_supervisor_and_of_nobody_else(fleet: Fleet):
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{directory}/notify")
        manager.settimeout(60)
        fleet.env |= {"NOTIFY_SOCKET": f"{directory}/notify", "WATCHDOG_USEC": "2000000"}
        supervisor = start_two(fleet)
        told: list[str] = []

        def has_heard(line: str) -> bool:
            return any(line in text.split("\n") for text in told)

        def hears(line: str) -> bool:
            if not has_heard(line):
                told.append(manager.recv(4096).decode())
            return has_heard(line)

        wait_until(lambda: hears("READY=1"), "it is up")
        wait_until(lambda: hears("STATUS=2 of 2 processes ready, 0 of 2 seats taken"), "both are ready")
        wait_until(lambda: hears("WATCHDOG=1"), "the watchdog is fed")
        supervisor.send_signal(signal.SIGTERM)
        wait_until(lambda: hears("STOPPING=1"), "it stops")
        assert supervisor.wait(60) == 0
        # A child would say "ready" alone, as a scheduler without a supervisor does.
        assert not [text for text in told if "STATUS=ready" in text]


def test_what_no_process_can_start_with_ends_the_supervisor_with_one(fleet: Fleet):
    with connection.schema_editor() as editor:
        editor.execute("ALTER TABLE helisched_worker RENAME TO helisched_worker_away")
    try:
        supervisor = fleet.start(*TWO)
        assert supervisor.wait(60) == 1
    finally:
        with connection.schema_editor() as editor:
            editor.execute("ALTER TABLE helisched_worker_away RENAME TO helisched_worker")
    assert "Run: python manage.py migrate helisched" in fleet.output()


def test_the_supervisor_has_no_connection_to_the_database(fleet: Fleet):
    supervisor = start_two(fleet)
    opened = [str(entry.readlink()) for entry in Path(f"/proc/{supervisor.pid}/fd").iterdir()]
    assert not [name for name in opened if name == str(connection.settings_dict["NAME"])]
    internet = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]}
    assert not [name for name in opened if name.removeprefix("socket:[").removesuffix("]") in internet]
    assert terminate(supervisor) == 0


def test_lines_of_a_process_begin_with_its_number(fleet: Fleet):
    supervisor = fleet.start("--processes", "2")
    wait_until(lambda: len(alive()) == 2, "both have reported themselves")
    record.enqueue("a")
    wait_until(lambda: all_done(record.path, 1), "the job is done")
    assert terminate(supervisor) == 0
    lines = fleet.output().splitlines()
    assert sum(line.startswith("helisched ") for line in lines) == 1
    assert any("2 processes" in line for line in lines)
    assert [line for line in lines if "tests.app.tasks.record" in line and line[12:16] in {" [1]", " [2]"}]
