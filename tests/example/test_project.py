"""The example as a stranger meets it: its own checks and tests, and the demo from start to stop."""

import re
import socket

LAST_LINE = re.compile(r"demo: (\d+) jobs succeeded, (\d+) crons fired, (\d+) failed")
MANAGE = "example_project/manage.py"
DEMO = "example_project/demo.py"


def test_the_examples_own_tests_pass(example):
    done = example(MANAGE, "test", "lighthouse", timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_example_has_no_complaint_of_djangos_checks(example):
    done = example(MANAGE, "check", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stderr


def test_the_example_misses_no_migration(example):
    done = example(MANAGE, "makemigrations", "--check", "--dry-run")
    assert done.returncode == 0, done.stdout


def test_debug_off_refuses_the_public_key(example):
    done = example(MANAGE, "check", DEBUG="0")
    assert done.returncode != 0
    assert "SECRET_KEY is not set" in done.stderr


def test_a_weather_that_does_not_exist_is_refused(example):
    done = example(MANAGE, "check", STORM="7")
    assert "STORM=7 is no weather" in done.stderr


def test_the_demo_runs_by_itself_and_counts_what_it_did(example):
    done = example(DEMO, DEMO_SECONDS="8")
    match = LAST_LINE.fullmatch(done.stdout.splitlines()[-1])
    assert match, done.stdout + done.stderr
    succeeded, fired, failed = map(int, match.groups())
    assert done.returncode == 0, done.stdout + done.stderr
    assert succeeded > 0
    assert fired > 0
    assert failed == 0
    assert "Traceback" not in done.stdout + done.stderr


def refusal(done):
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_an_occupied_port_is_one_sentence(example):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])
        sentence = refusal(example(DEMO, DEMO_PORT=port))
    assert sentence.startswith(f"demo: port {port} is in use on 127.0.0.1.")


def test_a_database_that_does_not_answer_is_one_sentence(example):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    sentence = refusal(example(DEMO, DATABASE_URL=f"postgres://keeper:secret-word@127.0.0.1:{port}/lights"))
    # Without the driver the sentence is about the driver.
    assert "does not answer" in sentence or "pip install" in sentence
    assert "secret-word" not in sentence


def test_an_address_of_no_known_database_is_one_sentence(example):
    assert "DATABASE_URL" in refusal(example(DEMO, DATABASE_URL="papyrus://alexandria/scrolls"))


def test_seconds_that_are_no_number_are_one_sentence(example):
    assert "DEMO_SECONDS='soon'" in refusal(example(DEMO, DEMO_SECONDS="soon"))


def test_a_missing_package_is_one_sentence(example):
    # -S leaves out site-packages: a Python without Django.
    sentence = refusal(example("-S", DEMO, PYTHONPATH=""))
    assert 'the package "django" is not installed' in sentence
