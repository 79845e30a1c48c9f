from __future__ import annotations

import subprocess
import sys

import pytest

from django_helisched.stores.base import QueueFilter
from tests.pure.jobs.factories import claim, new_job


@pytest.mark.parametrize(
    ("given", "has_args"),
    [
        ({}, False),
        ({"args": [None]}, True),
        ({"kwargs": {"a": 0}}, True),
        ({"context": 0}, True),
        ({"context": False}, True),
        ({"options": {"o": 1}}, True),
        ({"meta": {"m": 1}}, True),
        ({"args": [], "kwargs": {}, "context": None, "options": {}, "meta": {}}, False),
    ],
)
def test_a_job_has_arguments_when_anything_has_to_be_stored_beside_its_row(given, has_args):
    assert new_job(**given).has_args is has_args


def test_the_attempt_of_a_claim_is_the_one_after_those_that_ended():
    assert [claim(attempt_count=ended).attempt for ended in (0, 1, 7)] == [1, 2, 8]


@pytest.mark.parametrize(
    ("include", "exclude", "served"),
    [
        ((), (), ["mail", "mail-slow", "web", "Mail"]),
        (("mail",), (), ["mail"]),
        (("mail*",), (), ["mail", "mail-slow"]),
        ((), ("mail*",), ["web", "Mail"]),
        (("mail*", "web"), ("*-slow",), ["mail", "web"]),
        (("mail",), ("mail",), []),
    ],
)
def test_a_filter_serves_what_it_includes_and_does_not_exclude(include, exclude, served):
    queues = QueueFilter(include=include, exclude=exclude)
    assert [queue for queue in ("mail", "mail-slow", "web", "Mail") if queues.admits(queue)] == served


@pytest.mark.parametrize(
    "module",
    ["jobs.follow_up", "jobs.report", "jobs.keys", "stores.base", "stores.memory", "testing.clock", "testing.contract"],
)
def test_what_a_job_is_can_be_imported_without_django(module):
    program = (
        f"import sys, django_helisched.{module}; "
        "print(*sorted(name for name in sys.modules if name.split('.')[0] == 'django'))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "\n"
