from __future__ import annotations

import threading
import time
from itertools import pairwise

from django_helisched.jobs.ids import uuid7, uuid7s


def test_an_id_is_a_version_7_uuid_of_this_moment():
    before = time.time_ns() // 1_000_000
    made = uuid7()
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    # The counter may run ahead of the clock, but never by more than it counted.
    assert before - 1 <= made.int >> 80 <= time.time_ns() // 1_000_000 + 60_000


def test_ids_grow():
    ids = [uuid7() for _ in range(20_000)]
    assert all(earlier < later for earlier, later in pairwise(ids))


def test_ids_grow_as_text_and_as_bytes_too():
    ids = [uuid7() for _ in range(5000)]
    assert ids == sorted(ids, key=str) == sorted(ids, key=lambda each: each.bytes)


def test_ids_are_unique_and_grow_in_each_of_many_threads():
    made: list[list[object]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def make(own: list[object]) -> None:
        start.wait()
        own.extend(uuid7() for _ in range(3000))

    threads = [threading.Thread(target=make, args=(own,)) for own in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(own == sorted(own, key=str) for own in made)
    assert len({each for own in made for each in own}) == 8 * 3000


def test_many_ids_at_once_are_unique_and_grow_among_the_others():
    before, many, after = uuid7(), uuid7s(10_000), uuid7()
    ids = [before, *many, after]
    assert all(earlier < later for earlier, later in pairwise(ids))
    assert {made.version for made in many} == {7}
    assert len({made.int & ((1 << 62) - 1) for made in many}) == len(many)
    assert uuid7s(0) == []
