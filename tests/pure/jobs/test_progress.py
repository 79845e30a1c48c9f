"""What a body reports fits into what a database holds."""

from __future__ import annotations

import pytest

from django_helisched.jobs.progress import ProgressReport, storable_report


def test_a_plain_report_is_kept_as_it_is():
    assert storable_report(3, 7, "é") == ProgressReport(done=3, total=7, message="é")
    assert storable_report(3, None, "").total is None


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_are_cut_to_what_a_column_holds(sign):
    report = storable_report(sign * 10**30, sign * 10**30, "")
    assert (report.done, report.total) == (sign * (2**63 - 1), sign * (2**63 - 1))


def test_a_message_is_cut_and_cleaned():
    message = storable_report(1, 1, "a\x00\udcff" + "x" * 999).message
    assert message.startswith("a\\x00\\udcffx")
    assert len(message) == 300
