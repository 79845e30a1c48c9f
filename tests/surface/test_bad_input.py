"""Bad input gets one clear sentence: the thing, the place, the mend. Nothing is stored."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_helisched import RetryLater, action, conf, mutation, scheduler
from django_helisched.exceptions import InvalidArguments, InvalidFunction, InvalidOption, UnknownFunction
from django_helisched.models import Job


@action
def send_receipt(order_id: int, *, copy: bool = False) -> str:
    return f"sent {order_id}"


@mutation
def no_callback(order_id: int) -> None: ...


class Order:
    pk = 17


@pytest.fixture(autouse=True)
def nothing_is_stored(db: None) -> Any:
    yield
    assert not Job.objects.exists()


def sentence(error: pytest.ExceptionInfo[BaseException]) -> str:
    return str(error.value)


def test_an_unexpected_argument_is_named_with_those_there_are():
    with pytest.raises(InvalidArguments) as error:
        send_receipt.run_after(60, oder_id=1)  # type: ignore[call-arg]
    assert sentence(error) == (
        'send_receipt() got an unexpected argument "oder_id" (it takes: order_id, copy). Nothing was enqueued.'
    )


def test_a_missing_argument_is_named():
    with pytest.raises(InvalidArguments, match=r"missing a required argument: 'order_id' \(it takes: order_id, copy\)"):
        send_receipt.enqueue()  # type: ignore[call-arg]


def test_a_model_instance_is_refused_with_the_call_to_write():
    with pytest.raises(InvalidArguments) as error:
        send_receipt.enqueue(Order())  # type: ignore[arg-type]
    assert sentence(error) == (
        'send_receipt(): argument "order_id" is an Order, which cannot be stored as JSON. '
        "Pass its id: send_receipt.enqueue(order_id.pk). Nothing was enqueued."
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1, 2}, "is a set"),
        ({"deep": [float("nan")]}, "is nan"),
        (float("inf"), "is inf"),
        ({0: "t"}, "has the key 0"),
        ("\x00", "NUL"),
        ("\ud800", "surrogate"),
        (10**5000, "4300 digits"),
        (b"\xff", "is a bytes"),
    ],
    ids=["set", "nan", "inf", "int key", "NUL", "surrogate", "huge integer", "bytes"],
)
def test_what_json_cannot_hold_is_refused_before_any_statement(value: Any, reason: str):
    with pytest.raises(InvalidArguments, match=reason):
        send_receipt.enqueue(value)
    with pytest.raises(InvalidArguments, match=reason):
        send_receipt.using(context=value).enqueue(1)


def test_a_self_referencing_value_is_refused():
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidArguments, match="nested deeper"):
        send_receipt.enqueue(loop)  # type: ignore[arg-type]


def test_arguments_over_the_limit_are_refused(settings: Any):
    settings.HELISCHED = {"MAX_ARGS_BYTES": 100}
    with pytest.raises(InvalidArguments, match="at most 100 are stored"):
        scheduler.enqueue(send_receipt, ["x" * 200])


def test_a_secret_never_stands_in_a_sentence():
    with pytest.raises(InvalidArguments) as error:
        send_receipt.enqueue({"password": "s3cr3t", "at": {1, 2}})  # type: ignore[arg-type]
    assert "s3cr3t" not in sentence(error)


def test_a_naive_instant_is_refused_with_the_mend():
    with pytest.raises(ValueError, match=r"has no time zone\. Use django\.utils\.timezone\.make_aware"):
        send_receipt.run_at(datetime(2026, 12, 1, 8), 7)  # noqa: DTZ001


@pytest.mark.parametrize("delay", [-1, timedelta(seconds=-1), float("nan"), float("inf"), "10m", True])
def test_a_delay_that_is_none_is_refused(delay: Any):
    with pytest.raises(ValueError, match="Nothing was enqueued"):
        send_receipt.run_after(delay, 7)


@pytest.mark.parametrize("priority", [-101, 101, "high", 1.5, True])
def test_a_priority_out_of_range_is_refused(priority: Any):
    with pytest.raises(InvalidOption, match="whole number from -100 to 100"):
        send_receipt.using(priority=priority).enqueue(7)


@pytest.mark.parametrize("queue", ["", " mail", "a\nb", "x\x00", "q" * 101, 7])
def test_a_queue_that_databases_would_not_compare_alike_is_refused(queue: Any):
    with pytest.raises(InvalidOption):
        send_receipt.using(queue=queue).enqueue(7)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="prioriti"):
        send_receipt.using(prioriti=3)  # type: ignore[call-arg]


def test_an_unknown_path_is_refused_with_the_nearest_one():
    with pytest.raises(UnknownFunction, match=re.escape(f'Did you mean "{send_receipt.path}"')):
        scheduler.enqueue(send_receipt.path.replace("receipt", "reciept"), [7])
    with pytest.raises(UnknownFunction):
        scheduler.enqueue("os.system", ["true"])
    with pytest.raises(TypeError, match="Decorate it"):
        scheduler.enqueue(len, [7])  # type: ignore[arg-type]


def test_a_callback_that_could_not_be_called_is_refused():
    with pytest.raises(InvalidArguments, match="no_callback"):
        send_receipt.using(on_complete=no_callback).enqueue(7)


def test_functions_that_a_worker_could_not_import_or_run_are_refused():
    with pytest.raises(InvalidFunction, match=r"Move it to the top level of a module\."):

        @action
        def inner() -> None: ...

    async def later() -> None: ...

    later.__qualname__ = "later"
    with pytest.raises(InvalidFunction, match="Write it as a plain def"):
        mutation(later)

    def numbers() -> Any:
        yield 1

    numbers.__qualname__ = "numbers"
    with pytest.raises(InvalidFunction, match="generator"):
        action(numbers)


def test_two_functions_under_one_path_or_alias_are_refused():
    def other() -> None: ...

    other.__qualname__, other.__module__ = "send_receipt", __name__
    with pytest.raises(InvalidFunction, match="Two functions have the path"):
        action(other)
    other.__qualname__ = "other_receipt"
    with pytest.raises(InvalidFunction, match="already names"):
        action(aliases=[send_receipt.path])(other)


def test_a_mutation_cannot_run_at_most_once_and_an_action_that_does_has_no_budget():
    with pytest.raises(TypeError):
        mutation(at_most_once=True)(lambda: None)  # type: ignore[call-overload]
    with pytest.raises((TypeError, InvalidFunction)):
        action(at_most_once=True, max_failures=3)(lambda: None)


def test_a_retry_in_the_past_is_refused():
    with pytest.raises(InvalidOption):
        RetryLater(-1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"LEASES": 30}, 'Did you mean "LEASE"'),
        ({"LEASE": 0}, "more than zero seconds"),
        ({"LEASE": "30"}, "timedelta or a number of seconds"),
        ({"THREADS": 1.5}, "whole number"),
        ({"POLL": {"min": 2, "max": 1}}, "must not be longer"),
        ({"BACKOFF": {"base": 0}}, "1 or more"),
        ({"JOB_LOG_LEVEL": "LOUD"}, "name of a log level"),
        ({"RETENTION": {"sucess": 1}}, "success, failed, canceled, fires, workers"),
        ({"RETENTION": 7}, "None or a dict"),
        ({"RETENTION": {"success": "7d"}}, "timedelta or a number of seconds"),
        ({"RETENTION": {"failed": -1}}, "must not be negative"),
        ({"RETENTION": {"success": {"count": -1}}}, "0 or more"),
        ({"RETENTION": {"success": {"number": 1}}}, '"age", "count" or both'),
        ({"RETENTION": {"success": {}}}, '"age", "count" or both'),
        ({"RETENTION": {"fires": {"age": 1}}}, "timedelta or a number of seconds"),
        ({"KEY_TTL": None}, "timedelta or a number of seconds"),
        ([], "must be a dict"),
    ],
    ids=str,
)
def test_a_bad_setting_is_named_with_its_mend(given: Any, words: str):
    with pytest.raises(ImproperlyConfigured, match=words):
        conf.parse_settings(given)


def test_an_unknown_option_of_a_decorator_is_named_with_the_one_that_was_meant():
    def job_body() -> None: ...

    job_body.__qualname__ = "job_body"
    with pytest.raises(TypeError, match=r'got an unknown option "max_retries"\. Did you mean "max_failures"\?'):
        action(max_retries=3)(job_body)  # type: ignore[call-overload]
    with pytest.raises(InvalidOption, match=r"""timeout='30s': a duration is a timedelta or a number of seconds\.$"""):
        action(timeout="30s")(job_body)  # type: ignore[call-overload]
    with pytest.raises(InvalidOption, match='backoff has no "foo"'):
        action(backoff={"foo": 2})(job_body)


def test_a_method_is_refused_since_nobody_could_call_it():
    with pytest.raises(InvalidFunction, match=r"Move it to the top level of a module\."):

        class Shop:
            @action
            def close(self) -> None: ...


def test_what_is_no_id_is_refused_by_name():
    with pytest.raises(InvalidOption, match="'abc' is neither a job nor a job's id"):
        scheduler.cancel("abc")


def test_an_instant_as_an_argument_is_refused_with_the_text_to_pass():
    with pytest.raises(InvalidArguments, match=r"Pass it as text: order_id\.isoformat\(\)\."):
        send_receipt.enqueue(datetime(2026, 12, 1, tzinfo=UTC))  # type: ignore[arg-type]


def test_an_app_that_is_not_installed_is_told_so_in_one_sentence():
    code = (
        "import django; from django.conf import settings; settings.configure(); django.setup();"
        "from django_helisched import mutation"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "django.core.exceptions.ImproperlyConfigured: django_helisched is imported, but it is not in INSTALLED_APPS. "
        'Add "django_helisched" to INSTALLED_APPS.'
    )
