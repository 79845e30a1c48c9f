"""The newest lines are kept, no more than a row should hold, and the reader is told what is missing."""

from __future__ import annotations

import threading

import pytest

from django_helisched.jobs.job_log import MAX_LINE, MAX_LINES, MAX_LOG, JobLog


def log_of(*lines: str) -> list[str]:
    log = JobLog()
    for line in lines:
        log.add(line)
    return log.text().split("\n")


def test_nothing_logged_is_an_empty_text():
    assert JobLog().text() == ""


def test_lines_come_in_their_order():
    assert log_of("one", "two\nand its second half", "three") == ["one", "two", "and its second half", "three"]


def test_of_too_many_lines_the_newest_are_kept_and_the_rest_counted():
    lines = log_of(*(f"line {number}" for number in range(MAX_LINES + 5)))
    assert lines[0] == "[5 earlier records dropped]"
    assert lines[1:] == [f"line {number}" for number in range(5, MAX_LINES + 5)]


def test_of_too_much_text_the_newest_is_kept():
    lines = log_of(*(f"{number} " + "x" * 1000 for number in range(100)))
    dropped = 100 - len(lines[1:])
    assert lines[0] == f"[{dropped} earlier records dropped]"
    assert lines[1].startswith(f"{dropped} ")
    assert lines[-1].startswith("99 ")
    assert MAX_LOG - 1100 < sum(len(line) + 1 for line in lines[1:]) <= MAX_LOG


def test_one_dropped_record_is_said_in_the_singular():
    assert log_of(*["x"] * (MAX_LINES + 1))[0] == "[1 earlier record dropped]"


def test_a_long_line_is_cut_with_a_mark():
    (line,) = log_of("x" * 1_000_000)
    assert len(line) == MAX_LINE
    assert line.endswith("x [cut]")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a \x00 and a \udcff", "a \\x00 and a \\udcff"),
        ("postgres://ada:secret@db/shop", "postgres://ada:***@db/shop"),
    ],
)
def test_what_no_database_stores_is_escaped_and_credentials_are_hidden(line, shown):
    assert log_of(line) == [shown]


def test_threads_may_log_at_once():
    log, ready = JobLog(), threading.Barrier(4)

    def write(mark: str) -> None:
        ready.wait()
        for number in range(2000):
            log.add(f"{mark} {number}")

    threads = [threading.Thread(target=write, args=(mark,)) for mark in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = log.text().split("\n")
    assert len(lines) <= MAX_LINES + 1
    for mark in "abcd":
        numbers = [int(line.split()[1]) for line in lines[1:] if line.startswith(mark)]
        assert numbers == sorted(numbers)
    assert any(line.endswith(" 1999") for line in lines)
