from __future__ import annotations

import sys

import pytest

from benchmarks.cases import CASES, GROWTH
from benchmarks.peers import NAMES, peer_named


@pytest.mark.parametrize("name", NAMES)
def test_a_peer_can_be_read_without_being_installed_and_says_its_version(name):
    peer = peer_named(name)
    assert peer.name
    assert all("==" in wanted for wanted in peer.requirements) or name == "helisched"
    assert peer.worker(4)
    assert not set(sys.modules) & {"procrastinate", "huey", "django_q", "dj_queue", "django_ox", "pgqueuer", "chancy"}


def test_what_a_peer_leaves_out_are_cases_that_there_are():
    known = {case.name for case in (*CASES, *GROWTH)}
    assert {left_out for name in NAMES for left_out in peer_named(name).leaves_out} <= known


def test_a_distribution_is_found_by_its_own_name():
    assert peer_named("django-ox") is peer_named("django_ox")


def test_an_unknown_peer_is_refused_with_those_there_are():
    with pytest.raises(SystemExit, match="there are helisched, django_tasks_db"):
        peer_named("celery")
