from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_helisched.jobs.outcome import MAX_LINE
from django_helisched.jobs.payload import check_text
from django_helisched.jobs.report import MAX_ERROR, MAX_TRACEBACK, describe_error, describe_text


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class NotText(Exception):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value]  # noqa: PLE0307


def raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def texts_of(report):
    return (report.error_class, report.error, report.traceback, report.line)


def test_a_report_names_class_message_and_place():
    report = describe_error(raised(ValueError("no such order: 7")))
    assert report.error_class == "builtins.ValueError"
    assert report.error == "no such order: 7"
    assert report.line == "ValueError: no such order: 7"
    assert report.traceback.startswith("Traceback (most recent call last):")
    assert "in raised" in report.traceback
    assert report.traceback.rstrip().endswith("ValueError: no such order: 7")


def test_the_line_is_the_first_line_of_the_message():
    report = describe_error(raised(ValueError("\n  first\nsecond")))
    assert report.line == "ValueError: first"
    assert report.error == "\n  first\nsecond"


def test_an_error_without_a_message_is_named_by_its_class():
    report = describe_error(raised(KeyboardInterrupt()))
    assert (report.line, report.error) == ("KeyboardInterrupt", "")


def test_the_causes_are_in_the_traceback():
    outer = ValueError("outer")
    outer.__cause__ = raised(KeyError("inner"))
    assert "KeyError: 'inner'" in describe_error(raised(outer)).traceback


def test_an_error_that_was_never_raised_has_a_report():
    report = describe_error(ValueError("x"))
    assert (report.line, report.traceback) == ("ValueError: x", "ValueError: x\n")


@pytest.mark.parametrize("error", [Silent(), NotText(), Silent("x").with_traceback(None)])
def test_an_error_whose_text_raises_is_reported_all_the_same(error):
    report = describe_error(raised(error))
    assert "raised" in report.error
    assert type(error).__name__ in report.line
    assert "Traceback" in report.traceback


def test_a_group_of_errors_is_reported_with_its_members():
    group = ExceptionGroup("several", [ValueError("one"), Silent()])
    report = describe_error(raised(group))
    assert "one" in report.traceback
    assert report.line.startswith("ExceptionGroup: several")


def test_an_error_that_causes_itself_is_reported():
    error = ValueError("round")
    error.__cause__ = error
    assert describe_error(raised(error)).line == "ValueError: round"


def test_endless_recursion_is_reported_briefly():
    def again() -> None:
        again()

    with pytest.raises(RecursionError) as caught:
        again()
    report = describe_error(caught.value)
    assert report.error_class == "builtins.RecursionError"
    assert len(report.traceback) < MAX_TRACEBACK


@given(st.text())
def test_every_text_of_a_report_can_be_stored(text):
    for report in (describe_error(ValueError(text)), describe_text("", text)):
        for part in texts_of(report):
            check_text(part, "part")


def test_nul_and_surrogates_are_shown_as_escapes():
    report = describe_error(ValueError("a\x00b\ud800"))
    assert report.error == "a\\x00b\\ud800"
    assert report.line == "ValueError: a\\x00b\\ud800"


def test_long_texts_are_cut_with_a_mark():
    report = describe_error(raised(ValueError("x" * 10**6)))
    assert len(report.error) == MAX_ERROR
    assert report.error.endswith("x [cut]")
    assert len(report.line) == MAX_LINE
    assert report.line.endswith("x [cut]")
    assert report.traceback.startswith("[... ")
    assert len(report.traceback) < MAX_TRACEBACK + 50


def test_a_message_of_a_million_letters_is_described_in_no_time():
    for odd in ("x" * 10**6, "://" * 10**5, "a://b:" * 10**5, "password " * 10**5, "x" * 10**6 + "://y:"):
        assert describe_error(ValueError(odd)).line


def test_a_text_of_exactly_the_limit_is_not_cut():
    assert describe_text("", "x" * MAX_ERROR).error == "x" * MAX_ERROR


def test_the_name_of_a_class_fits_its_column():
    long = type("X" * 400, (Exception,), {"__module__": "m" * 400})
    report = describe_error(long("no"))
    assert len(report.error_class) == 250
    assert len(report.line) <= MAX_LINE


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://ann:secret@db/app", "postgres://ann:***@db/app"),
        ("mysql://ann:p@db", "mysql://ann:***@db"),
        ("host=db password=secret user=ann", "host=db password=*** user=ann"),
        ("PASSWORD = secret, x", "PASSWORD = *** x"),
        ("https://example.org/a:b@c", "https://example.org/a:b@c"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_credentials_are_masked_wherever_they_appear(text, shown):
    report = describe_error(raised(ValueError(text)))
    assert report.error == shown
    assert report.line == f"ValueError: {shown}"
    assert shown in report.traceback
    assert ("secret" in report.traceback) == ("secret" in shown)


def test_a_failure_without_an_exception_has_a_report_too():
    report = describe_text("django_helisched.Timeout", "took longer than 5 s")
    assert texts_of(report) == ("django_helisched.Timeout", "took longer than 5 s", "", "took longer than 5 s")
