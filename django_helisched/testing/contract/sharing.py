"""claim: which queues are served, and how they share a worker."""

# ruff: noqa: S101

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_helisched.stores.base import QueueFilter, QueuePause
from django_helisched.testing.contract.factories import (
    LEASE,
    SECOND,
    START,
    TICK,
    enqueued,
    new_job,
    only,
    read,
    running,
    undone,
)

if TYPE_CHECKING:
    from django_helisched.stores.base import JobStore
    from django_helisched.testing.clock import ManualClock


class ShareContract:
    """Queues beside one another."""

    def test_queues_get_equal_shares_in_the_order_of_their_names(self, store: JobStore) -> None:
        _fill(store, c=3, a=3, b=3)
        assert _looked(store, limit=6) == "aabbcc"

    def test_the_turn_says_which_queue_is_first(self, store: JobStore) -> None:
        _fill(store, a=2, b=2, c=2)
        assert [_looked(store, limit=3, turn=turn) for turn in range(5)] == ["abc", "bca", "cab", "abc", "bca"]

    def test_what_the_shares_leave_is_filled_in_the_same_order(self, store: JobStore) -> None:
        _fill(store, a=9, b=1, c=9)
        assert _looked(store, limit=8, turn=0) == "aabccaaa"
        assert _looked(store, limit=8, turn=2) == "ccaabccc"

    def test_a_limit_below_the_number_of_queues_serves_those_whose_turn_it_is(self, store: JobStore) -> None:
        _fill(store, a=3, b=3, c=3)
        assert [_looked(store, limit=2, turn=turn) for turn in range(3)] == ["ab", "bc", "ca"]

    def test_priority_orders_within_a_queue_only(self, store: JobStore) -> None:
        enqueued(store, queue="a", priority=-100)
        enqueued(store, queue="b", priority=100)
        assert _looked(store, limit=1) == "a"

    def test_queues_without_a_due_job_take_no_share(self, store: JobStore) -> None:
        _fill(store, a=4, c=4)
        enqueued(store, queue="b", due_at=START + SECOND)
        running(store, queue="d")
        assert _looked(store, limit=4) == "aacc"

    def test_every_eighth_turn_takes_the_oldest_whatever_their_queue_and_priority(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        for queue, priority, after in (("a", 100, 3), ("b", 0, 1), ("a", -100, 0), ("c", 50, 2)):
            enqueued(store, queue=queue, priority=priority, due_at=START + after * TICK)
        clock.advance(1)
        for turn in (7, 15, 8007):
            assert _looked(store, limit=3, turn=turn) == "abc"
            assert _priorities(store, limit=3, turn=turn) == [-100, 0, 50]
        assert _priorities(store, limit=1, turn=9) == [100]

    def test_the_turn_by_age_goes_by_the_id_among_jobs_of_one_instant(self, store: JobStore) -> None:
        stored = [enqueued(store, queue=queue).id for queue in "fedcba"]
        claims = store.claim(worker_id="w", limit=4, lease=LEASE, turn=7)
        assert [claim.id for claim in claims] == stored[:4]

    def test_a_share_is_filled_from_the_lower_priorities_of_its_queue(self, store: JobStore) -> None:
        for queue, priority in (("a", 9), ("a", 5), ("a", 1), ("a", 1), ("b", 0), ("b", 0), ("b", 0), ("b", 0)):
            enqueued(store, queue=queue, priority=priority)
        claims = store.claim(worker_id="w", limit=6, lease=LEASE, turn=0)
        assert [(claim.queue, claim.priority) for claim in claims] == [
            *(("a", 9), ("a", 5), ("a", 1)),
            *(("b", 0), ("b", 0), ("b", 0)),
        ]
        assert _looked(store, limit=6) == "ab"

    def test_a_flood_of_high_priority_starves_nobody(self, store: JobStore, clock: ManualClock) -> None:
        """The queue is never empty of urgent jobs; the one that is not urgent runs within eight claims."""
        patient = enqueued(store, priority=-100)
        taken = []
        for turn in range(8):
            clock.advance(TICK)
            enqueued(store, priority=100)
            enqueued(store, priority=100)
            taken += [claim.id for claim in store.claim(worker_id="w", limit=1, lease=LEASE, turn=turn)]
        assert taken.index(patient.id) == 7

    def test_a_flood_in_one_queue_delays_no_other_queue(self, store: JobStore) -> None:
        _fill(store, flood=100)
        enqueued(store, queue="quiet", priority=-100)
        for turn in range(7):
            assert "quiet" in [claim.queue for claim in _look(store, limit=2, turn=turn)]

    def test_equal_jobs_are_taken_in_the_order_in_which_they_were_stored(self, store: JobStore) -> None:
        stored = [entry.job.id for entry in store.enqueue([new_job(store) for _ in range(200)])]
        taken: list[object] = []
        for turn in range(25):
            taken += [claim.id for claim in store.claim(worker_id="w", limit=8, lease=LEASE, turn=turn)]
        assert taken == stored

    def test_the_turn_by_age_passes_over_what_nobody_may_claim(self, store: JobStore, clock: ManualClock) -> None:
        expired = enqueued(store, queue="a", expires_at=START)
        store.pause_queue("p")
        enqueued(store, queue="p")
        enqueued(store, queue="x")
        fresh = enqueued(store, queue="b")
        clock.advance(TICK)
        queues = QueueFilter(exclude=("x",))
        claims = store.claim(worker_id="w", limit=9, lease=LEASE, turn=7, queues=queues)
        assert [claim.id for claim in claims] == [fresh.id]
        assert read(store, expired.id).fence == 0

    def test_only_included_queues_are_served(self, store: JobStore) -> None:
        _fill(store, a=1, b=1, c=1)
        assert _looked(store, queues=only("c", "a")) == "ac"

    def test_excluded_queues_are_not_served(self, store: JobStore) -> None:
        _fill(store, a=1, b=1, c=1)
        assert _looked(store, queues=QueueFilter(exclude=("b",))) == "ac"

    def test_a_pattern_names_many_queues(self, store: JobStore) -> None:
        for queue in ("mail", "mail-slow", "email", "Mail"):
            enqueued(store, queue=queue)
        claims = _look(store, queues=QueueFilter(include=("mail*",), exclude=("*-slow",)))
        assert [claim.queue for claim in claims] == ["mail"]

    def test_an_excluded_queue_is_not_served_though_it_is_included(self, store: JobStore) -> None:
        _fill(store, a=1, b=1)
        assert _looked(store, queues=QueueFilter(include=("a", "b"), exclude=("a",))) == "b"

    def test_a_paused_queue_is_left_alone_until_it_is_resumed(self, store: JobStore) -> None:
        _fill(store, a=1, b=1)
        store.pause_queue("a", by="ann", reason="the printer burns")
        assert _looked(store) == "b"
        assert store.resume_queue("a")
        assert _looked(store) == "ab"

    def test_a_pause_with_an_end_ends_at_that_instant(self, store: JobStore, clock: ManualClock) -> None:
        _fill(store, a=1)
        store.pause_queue("a", until=START + SECOND)
        clock.advance(SECOND - TICK)
        assert _looked(store) == ""
        clock.advance(TICK)
        assert _looked(store) == "a"

    def test_a_second_pause_replaces_the_first(self, store: JobStore, clock: ManualClock) -> None:
        _fill(store, a=1)
        store.pause_queue("a", until=START + SECOND)
        store.pause_queue("a")
        clock.advance(60)
        assert _looked(store) == ""

    def test_what_is_claimed_already_goes_on_in_a_paused_queue(self, store: JobStore, clock: ManualClock) -> None:
        claim = running(store, queue="a")
        store.pause_queue("a")
        clock.advance(1)
        assert store.heartbeat([claim], lease=LEASE).lost == frozenset()
        assert read(store, claim.id).lease_expires_at == START + SECOND + LEASE

    def test_a_queue_that_nobody_paused_cannot_be_resumed(self, store: JobStore) -> None:
        assert not store.resume_queue("a")
        store.pause_queue("a")
        assert [store.resume_queue("a"), store.resume_queue("a")] == [True, False]

    def test_the_pauses_tell_who_paused_what_and_why_in_the_order_of_names(
        self, store: JobStore, clock: ManualClock
    ) -> None:
        store.pause_queue("b", by="ann", reason="the printer burns", until=START + 60 * SECOND)
        clock.advance(SECOND)
        store.pause_queue("B")
        assert store.pauses() == [
            QueuePause(queue="B", paused_at=START + SECOND),
            QueuePause(queue="b", paused_at=START, by="ann", reason="the printer burns", until=START + 60 * SECOND),
        ]

    def test_a_pause_that_was_lifted_or_has_run_out_is_none(self, store: JobStore, clock: ManualClock) -> None:
        store.pause_queue("a", until=START + SECOND)
        store.pause_queue("b")
        store.resume_queue("b")
        clock.advance(SECOND - TICK)
        assert [pause.queue for pause in store.pauses()] == ["a"]
        clock.advance(TICK)
        assert store.pauses() == []

    def test_queues_are_told_apart_byte_by_byte(self, store: JobStore) -> None:
        for queue in ("a", "A", "á"):
            enqueued(store, queue=queue)
        store.pause_queue("A")
        assert sorted(claim.queue for claim in _look(store)) == ["a", "á"]


def _fill(store: JobStore, **counts: int) -> None:
    store.enqueue([new_job(store, queue=queue) for queue, count in counts.items() for _ in range(count)])


def _look(store: JobStore, **options: Any) -> list[Any]:
    """Return what a claim would take, and leave everything as it was."""
    with undone(store):
        claims = store.claim(**{"worker_id": "w", "limit": 64, "lease": LEASE, "turn": 0, **options})
    return list(claims)


def _looked(store: JobStore, **options: Any) -> str:
    return "".join(claim.queue for claim in _look(store, **options))


def _priorities(store: JobStore, **options: Any) -> list[int]:
    return [claim.priority for claim in _look(store, **options)]
