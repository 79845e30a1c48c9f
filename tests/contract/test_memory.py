"""What only the memory store can be asked: threads that share one store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from django_helisched.stores.base import SettleAnswer, Settlement
from django_helisched.stores.memory import MemoryJobStore
from django_helisched.testing.clock import ManualClock
from django_helisched.testing.contract import START
from django_helisched.testing.contract.factories import LEASE, enqueued, new_job, success

THREADS = 8


def test_threads_that_claim_at_the_same_time_never_get_the_same_job():
    store = MemoryJobStore(ManualClock(START))
    jobs = store.enqueue([new_job(store) for _ in range(200)])
    start = threading.Barrier(THREADS)

    def work(number: int) -> list[object]:
        start.wait()
        taken = []
        while claims := store.claim(worker_id=f"w{number}", limit=3, lease=LEASE):
            taken += claims
        return [claim.id for claim in taken]

    with ThreadPoolExecutor(THREADS) as pool:
        taken = [job_id for ids in pool.map(work, range(THREADS)) for job_id in ids]
    assert sorted(taken, key=str) == [result.job.id for result in jobs]


def test_threads_that_enqueue_one_key_at_the_same_time_make_one_job():
    store = MemoryJobStore(ManualClock(START))
    start = threading.Barrier(THREADS)

    def enqueue(_: int) -> bool:
        start.wait()
        return store.enqueue([new_job(store, idempotency_key="k")])[0].created

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(enqueue, range(THREADS))) == 1


def test_threads_that_settle_one_claim_at_the_same_time_end_it_once():
    store = MemoryJobStore(ManualClock(START))
    enqueued(store)
    [claim] = store.claim(worker_id="w", limit=1, lease=LEASE)
    start = threading.Barrier(THREADS)

    def settle(_: int) -> SettleAnswer:
        start.wait()
        return store.settle([Settlement(claim=claim, outcome=success(), started_at=START)])[0]

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(settle, range(THREADS)))
    assert sorted(answer.name for answer in answers) == ["DONE", *["LOST"] * (THREADS - 1)]
    assert len(store.attempts_of(claim.id)) == 1


def test_another_thread_never_sees_a_transaction_half_done():
    store = MemoryJobStore(ManualClock(START))
    inside, asked = threading.Event(), threading.Event()

    def look() -> object:
        inside.wait()
        asked.set()
        return store.next_due_at()

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(look)
        with store.atomic():
            first = enqueued(store, priority=1)
            inside.set()
            asked.wait()
            store.cancel(first.id)
        assert answer.result() is None


def test_a_hook_of_another_thread_does_not_join_a_transaction_that_is_open_here():
    store = MemoryJobStore(ManualClock(START))
    seen: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        with store.atomic():
            hook = pool.submit(store.on_commit, lambda: seen.append("theirs"))
            store.on_commit(lambda: seen.append("ours"))
        hook.result()
    assert sorted(seen) == ["ours", "theirs"]
