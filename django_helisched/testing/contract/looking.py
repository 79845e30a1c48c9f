"""What a store tells without changing anything: lists, due times, workers."""

# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.job import State
from django_helisched.stores.base import JobFilter, QueueFilter, WorkerReport
from django_helisched.testing.contract.factories import (
    GRACE,
    SECOND,
    START,
    TICK,
    claimed,
    enqueued,
    new_job,
    only,
    running,
    settled,
    success,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


class LookContract:
    """Reads, and the rows of workers."""

    def test_the_time_is_the_clocks(self, store: JobStore, clock: ManualClock) -> None:
        assert store.now() == clock.now() == START
        clock.advance(1.5)
        assert store.now() == START + 1.5 * SECOND

    def test_nothing_is_found_under_an_unknown_id(self, store: JobStore) -> None:
        assert store.get(uuid7()) is None
        assert list(store.attempts_of(uuid7())) == []
        assert store.args_of(uuid7())["kwargs"] == {}

    def test_jobs_are_listed_newest_first_page_by_page(self, store: JobStore) -> None:
        ids = [result.job.id for result in store.enqueue([new_job(store) for _ in range(5)])]
        newest_first = ids[::-1]
        everything = JobFilter()
        assert _ids(store, everything) == newest_first
        assert _ids(store, everything, limit=2) == newest_first[:2]
        page = store.list(everything, limit=2, before=newest_first[1])
        assert [job.id for job in page] == newest_first[2:4]

    def test_a_list_shows_the_rows_themselves(self, store: JobStore) -> None:
        job = enqueued(store, args=[1])
        assert store.list(JobFilter()) == [job]

    def test_a_list_is_narrowed_by_each_of_its_filters(self, store: JobStore) -> None:
        parent, cron = uuid7(), uuid7()
        plain = enqueued(store)
        chosen = enqueued(
            store,
            queue="mail",
            fn_path="shop.mail",
            space="acme",
            cron_id=cron,
            parent_id=parent,
            due_at=START + SECOND,
        )
        store.cancel(chosen.id)
        for which in (
            JobFilter(states=(State.CANCELED, State.FAILED)),
            JobFilter(queues=("mail", "other")),
            JobFilter(fn_path="shop.mail"),
            JobFilter(space="acme"),
            JobFilter(cron_id=cron),
            JobFilter(parent_id=parent),
            JobFilter(states=(State.CANCELED,), queues=("mail",), fn_path="shop.mail", space="acme"),
        ):
            assert _ids(store, which) == [chosen.id]
        assert _ids(store, JobFilter(space="")) == [plain.id]
        assert _ids(store, JobFilter(queues=("mail",), states=(State.PENDING,))) == []
        assert _ids(store, JobFilter(fn_path="SHOP.MAIL")) == []

    def test_the_next_due_time_is_the_earliest(self, store: JobStore) -> None:
        assert store.next_due_at() is None
        for after in (5, 3, 4):
            enqueued(store, due_at=START + after * SECOND)
        assert store.next_due_at() == START + 3 * SECOND

    def test_a_due_time_in_the_past_is_told_as_it_is(self, store: JobStore, clock: ManualClock) -> None:
        enqueued(store)
        clock.advance(60)
        assert store.next_due_at() == START

    def test_only_pending_jobs_are_due(self, store: JobStore) -> None:
        running(store)
        settled(store, running(store), success())
        store.cancel(enqueued(store).id)
        assert store.next_due_at() is None

    def test_only_served_queues_are_due(self, store: JobStore) -> None:
        enqueued(store, queue="a", due_at=START + SECOND)
        enqueued(store, queue="b", due_at=START + 2 * SECOND)
        assert store.next_due_at(only("b")) == START + 2 * SECOND
        assert store.next_due_at(QueueFilter(exclude=("a", "b"))) is None

    def test_a_paused_queue_is_due_when_its_pause_ends(self, store: JobStore) -> None:
        enqueued(store, queue="a", due_at=START + SECOND)
        store.pause_queue("a")
        assert store.next_due_at() is None
        store.pause_queue("a", until=START + 10 * SECOND)
        assert store.next_due_at() == START + 10 * SECOND
        store.pause_queue("a", until=START + TICK)
        assert store.next_due_at() == START + SECOND

    def test_a_pause_that_is_over_delays_nobody(self, store: JobStore, clock: ManualClock) -> None:
        enqueued(store, queue="a")
        store.pause_queue("a", until=START + SECOND)
        clock.advance(1)
        assert store.next_due_at() == START
        assert claimed(store).queue == "a"

    def test_a_worker_is_live_until_it_was_not_seen_for_too_long(self, store: JobStore, clock: ManualClock) -> None:
        store.report_worker(_report("w1"))
        clock.advance(60)
        assert _live(store, 60) == ["w1"]
        clock.advance(TICK)
        assert _live(store, 60) == []

    def test_a_report_replaces_the_earlier_one(self, store: JobStore, clock: ManualClock) -> None:
        store.report_worker(_report("w1"))
        clock.advance(60)
        store.report_worker(replace(_report("w1"), in_flight=3))
        [report] = store.live_workers(SECOND)
        assert report.in_flight == 3

    def test_a_report_comes_back_as_it_was_given(self, store: JobStore) -> None:
        given = _report("w1")
        store.report_worker(given)
        [report] = store.live_workers(GRACE)
        lists = ("functions", "queues", "declarations")
        for name in lists:
            assert list(getattr(report, name)) == list(getattr(given, name))
        empty: dict[str, Sequence[str]] = dict.fromkeys(lists, ())
        assert replace(report, **empty) == replace(given, **empty)  # type: ignore[arg-type]

    def test_a_stopped_worker_is_not_live(self, store: JobStore) -> None:
        for worker_id in ("w2", "w1", "w3"):
            store.report_worker(_report(worker_id))
        store.report_worker(replace(_report("w3"), state="stopped"))
        assert _live(store, 60) == ["w1", "w2"]


def _report(worker_id: str) -> WorkerReport:
    return WorkerReport(
        id=worker_id,
        host="host",
        pid=7,
        started_at=START - SECOND,
        version="0.1",
        tzdata_version="2026a",
        functions=("shop.a", "shop.b"),
        queues=("mail*",),
        declarations=("code::digest",),
        seats=4,
        in_flight=1,
    )


def _ids(store: JobStore, which: JobFilter, limit: int = 100) -> list[object]:
    return [job.id for job in store.list(which, limit=limit)]


def _live(store: JobStore, seconds: int) -> list[str]:
    return [report.id for report in store.live_workers(seconds * SECOND)]
