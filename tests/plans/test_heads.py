"""The heads of a claim stay right while queues and priorities come and go, and cost one statement while they stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_helisched import scheduler, wiring
from django_helisched.models import Job
from django_helisched.stores.base import EVERY_QUEUE, QueueFilter
from django_helisched.stores.orm.heads import due_heads, every_head
from tests.app.jobs import tell

pytestmark = pytest.mark.django_db


def test_heads_follow_what_is_stored():
    assert heads() == []
    store("b", 0), store("d", 5), store("d", -5)
    assert heads() == [("b", 0), ("d", 5), ("d", -5)]
    # Before the first, between two, below the last of a queue, above the first of one, after the last.
    store("a", 1), store("c", 0), store("b", -1), store("d", 9), store("e", 0)
    assert heads() == [("a", 1), ("b", 0), ("b", -1), ("c", 0), ("d", 9), ("d", 5), ("d", -5), ("e", 0)]
    gone("a"), gone("d", 5), gone("b"), gone("e")
    assert heads() == [("c", 0), ("d", 9), ("d", -5)]
    gone("c"), gone("d")
    assert heads() == []


def test_one_statement_is_enough_while_the_heads_stay_the_same():
    for queue in range(10):
        for priority in (-1, 0, 1):
            store(f"queue {queue}", priority)
    assert len(heads()) == 30
    with CaptureQueriesContext(connection) as asked:
        assert len(heads()) == 30
    assert len(asked) == 1


def test_more_heads_than_one_statement_asks_for():
    scheduler.enqueue_many([(tell, [0], {"queue": f"queue {number:03}"}) for number in range(450)])
    assert [queue for queue, _ in heads()] == [f"queue {number:03}" for number in range(450)]
    assert len(heads()) == 450


def test_a_head_without_jobs_costs_no_statement_and_is_found_again():
    for number in range(3):
        store(f"queue {number}", 0)
    assert len(heads()) == 3
    gone("queue 1")
    assert heads() == [("queue 0", 0), ("queue 2", 0)]
    store("queue 1", 0)
    with CaptureQueriesContext(connection) as asked:
        assert heads() == [("queue 0", 0), ("queue 1", 0), ("queue 2", 0)]
    assert len(asked) == 1


def test_names_that_collations_see_differently_are_heads_of_their_own():
    names = ["a", "A", "a!", "a b", "ä", "\U0001f980"]
    for name in names:
        store(name, 0)
    for _ in range(2):
        assert sorted(queue for queue, _ in heads()) == sorted(names)


def test_expired_jobs_make_no_head():
    store("a", 0), store("b", 1), store("b", 0)
    Job.objects.filter(priority=0).update(expires_at=wiring.job_store().now() - timedelta(seconds=1))
    for _ in range(2):
        assert heads() == [("b", 1)]


def test_the_due_heads_are_those_that_a_claim_may_visit():
    store("due", 0), store("due", 1), store("later", 0), store("paused", 0), store("resumed", 0)
    now = wiring.job_store().now()
    Job.objects.filter(queue="later").update(next_run_at=now + timedelta(hours=1))
    Job.objects.filter(queue="due", priority=1).update(next_run_at=now + timedelta(seconds=1))
    for queue, until in (("paused", None), ("resumed", now - timedelta(seconds=1))):
        wiring.job_store().pause_queue(queue, by="the tests", until=until)
    for _ in range(2):
        found = due_heads(connection, EVERY_QUEUE, now)
        assert sorted((head.queue, head.priority) for head in found) == [("due", 0), ("resumed", 0)]
        assert due_heads(connection, QueueFilter.of(["!due"]), now) == [head for head in found if head.queue != "due"]


def heads():
    found = every_head(connection, wiring.job_store().now())
    return sorted(((head.queue, head.priority) for head in found), key=lambda head: (head[0], -head[1]))


def store(queue, priority):
    tell.using(queue=queue, priority=priority).enqueue("it")


def gone(queue, *priorities):
    rows = Job.objects.filter(queue=queue)
    (rows.filter(priority__in=priorities) if priorities else rows).delete()
