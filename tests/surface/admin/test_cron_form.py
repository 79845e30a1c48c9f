"""Crons of the database by a form: what is refused at which field, and what a preview shows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import ADDITION, LogEntry

from django_helisched.models import Cron
from tests.surface.admin.forms import GOOD, created, due, edited, errors_of
from tests.surface.admin.pages import address, told
from tests.surface.admin.rows import FUNCTION, entries_of, now

pytestmark = pytest.mark.django_db

WAYS = ("add", "edit")


def test_a_cron_is_created_due_at_its_next_time(operator):
    response = operator.post(address("cron_add"), GOOD)
    row = Cron.objects.get()
    assert response.url == address("cron_change", row.pk)
    assert (row.source, row.name, row.fn_path, row.kwargs) == ("operator", "digest", FUNCTION, {"mark": 1})
    assert (row.tz, row.catch_up, row.overlap, row.queue) == ("Europe/Paris", "fire_all", "skip", "mail")
    assert (row.priority, row.max_failures, row.jitter) == (3, 4, timedelta(seconds=2.5))
    assert row.enabled
    assert row.declared_by == "ada"
    assert due() > now()
    assert entries_of(row) == ["Created."]
    assert LogEntry.objects.get().action_flag == ADDITION
    assert told(response) == ["Created."]


def test_little_is_needed_for_a_cron(operator):
    least = {"name": "beat", "fn": FUNCTION, "args": "[1]", "every": "1.5", "tz": "UTC"}
    operator.post(address("cron_add"), {**least, "catch_up": "fire_once", "overlap": "allow"})
    row = Cron.objects.get()
    assert (row.spec, row.args, row.queue, row.priority) == ('{"kind":"interval","ms":1500}', [1], None, None)
    assert not row.enabled


def test_a_form_sent_twice_makes_one_cron(operator):
    operator.post(address("cron_add"), GOOD)
    (said,) = errors_of(operator.post(address("cron_add"), GOOD))["name"]
    assert said.startswith('There is a cron "digest" already.')
    assert Cron.objects.count() == LogEntry.objects.count() == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("changed", "field", "part"),
    [
        ({"expr": "61 * * * *"}, "expr", '"61 * * * *": '),
        ({"expr": "0 0 30 2 *"}, "expr", '"0 0 30 2 *"'),
        ({"expr": "@reboot"}, "expr", "@reboot"),
        ({"expr": ""}, "expr", "one of the two"),
        ({"every": "5"}, "expr", "one of the two"),
        ({"expr": "", "every": "-1"}, "every", "zero or more"),
        ({"expr": "", "every": "0"}, "every", "An interval must be between"),
        ({"expr": "", "every": "1e300"}, "every", "the interval must be"),
        ({"expr": "", "every": "nan"}, "every", "number"),
        ({"tz": "Europe/Pariss"}, "tz", 'Did you mean "Europe/Paris"?'),
        ({"tz": ""}, "tz", "required"),
        ({"fn": "tests.app.jobs.nots"}, "fn", 'No registered function has the path "tests.app.jobs.nots".'),
        ({"fn": ""}, "fn", "required"),
        ({"args": '{"marc": 1}'}, "args", 'unexpected argument "marc"'),
        ({"args": ""}, "args", "missing a required argument"),
        ({"args": "{"}, "args", "no JSON at line 1, column 2"),
        ({"args": '{"mark": NaN}'}, "args", "NaN is no JSON value"),
        ({"args": "[-Infinity]"}, "args", "-Infinity is no JSON value"),
        ({"args": "[1e999]"}, "args", "args hold inf"),
        ({"args": "7"}, "args", "a JSON object for keyword arguments"),
        ({"args": "[" * 5000}, "args", "JSON"),
        ({"args": "[" + "9" * 5000 + "]"}, "args", "too long"),
        ({"args": '["\\u0000"]'}, "args", "NUL"),
        ({"start": "soon"}, "start", "Write an instant"),
        ({"start": "0001-01-01 00:00+14:00"}, "start", "Write an instant"),
        ({"start": "2027-03-28 02:30"}, "start", "skip or repeat"),
        ({"end": "2027-10-31 02:30"}, "end", "skip or repeat"),
        ({"start": "2027-02-01 00:00", "end": "2027-01-01 00:00"}, "end", "must be before end"),
        ({"catch_up": "all"}, "catch_up", "Select a valid choice"),
        ({"overlap": "queue"}, "overlap", "Select a valid choice"),
        ({"jitter": "-1"}, "jitter", "greater than or equal to 0"),
        ({"jitter": "inf"}, "jitter", "number"),
        ({"queue": "a\tb"}, "queue", "must be printable"),
        ({"queue": "a" * 101}, "queue", "100"),
        ({"priority": "101"}, "priority", "from -100 to 100"),
        ({"max_failures": "0"}, "max_failures", "from 1 to"),
        ({"fn": "tests.app.jobs.once", "max_failures": "2"}, "max_failures", "at_most_once"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_saves_nothing(operator, way, changed, field, part):
    row = created(tz="Europe/Paris") if way == "edit" else None
    before = list(Cron.objects.values())
    response = (
        operator.post(address("cron_add"), {**GOOD, **changed}) if row is None else edited(operator, row, **changed)
    )
    errors = errors_of(response)
    assert set(errors) == {field}
    assert part in " ".join(errors[field])
    assert list(Cron.objects.values()) == before
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("changed", [{"name": "a\tb"}, {"name": "x" * 151}, {"name": ""}, {"space": "a\tb"}])
def test_a_bad_name_is_said_at_its_field(operator, changed):
    assert set(errors_of(operator.post(address("cron_add"), {**GOOD, **changed}))) == set(changed)
    assert not Cron.objects.exists()


def test_a_preview_shows_the_next_ten_and_saves_nothing(operator):
    data = {**GOOD, "expr": "30 2 1 * mon", "_preview": "1"}
    response = operator.post(address("cron_add"), data)
    assert errors_of(response) == {}
    assert len(response.context["next_fires"]) == 10
    assert any("on every day that matches one of them" in said for said in response.context["notices"])
    assert response.context["form"]["expr"].value() == "30 2 1 * mon"
    assert not Cron.objects.exists()
    assert not LogEntry.objects.exists()


def test_a_preview_says_what_the_clocks_do(operator):
    data = {**GOOD, "expr": "30 2 * * *", "start": "2999-03-29 00:00", "_preview": "1"}
    fires = operator.post(address("cron_add"), data).context["next_fires"]
    assert "02:30 does not exist on 31 March: fires at 03:30." in [fire["note"] for fire in fires]


def test_a_preview_needs_a_schedule_and_no_more(operator):
    response = operator.post(address("cron_add"), {"expr": "0 9 * * *", "tz": "UTC", "_preview": "1"})
    assert len(response.context["next_fires"]) == 10
    response = operator.post(address("cron_add"), {**GOOD, "expr": "x", "_preview": "1"})
    assert "next_fires" not in response.context
