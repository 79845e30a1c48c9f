from __future__ import annotations

import json

import pytest

from django_helisched.crons.spec import CronSpec, IntervalSpec, InvalidSchedule, parse_spec


@pytest.mark.parametrize(
    ("stored", "spec", "canonical"),
    [
        ({"kind": "interval", "ms": 90_000}, IntervalSpec(90_000), '{"kind":"interval","ms":90000}'),
        ('{"ms": 1, "kind": "interval"}', IntervalSpec(1), '{"kind":"interval","ms":1}'),
        (
            {"kind": "cron", "expr": " 0  9 * * mon-fri"},
            CronSpec("0 9 * * mon-fri"),
            '{"expr":"0 9 * * mon-fri","kind":"cron"}',
        ),
        ('{"kind":"cron","expr":"@daily"}', CronSpec("@daily"), '{"expr":"@daily","kind":"cron"}'),
    ],
)
def test_a_stored_schedule_is_read_and_has_one_canonical_text(stored, spec, canonical):
    assert parse_spec(stored) == spec
    assert parse_spec(spec) is spec
    assert spec.to_json() == canonical
    assert parse_spec(canonical) == spec


@pytest.mark.parametrize(
    "stored",
    [
        "", "null", "5", "[]", "{", "0 9 * * *", "[" * 5000, '{"kind":"cron"}', '{"kind":"interval"}', "x" * 10_000,
        '{"kind":"cron","expr":null}', '{"kind":"cron","expr":"0 0 30 2 *"}', '{"kind":"reboot"}',
        '{"kind":"interval","ms":1.5}', '{"kind":"interval","ms":true}', '{"kind":"interval","ms":"5"}',
        '{"kind":"interval","ms":0}', '{"kind":"interval","ms":-1}', '{"kind":"interval","ms":1e400}',
        '{"kind":"interval","ms":NaN}', '{"kind":"interval","ms":' + "9" * 5000 + "}",
        '{"kind":"interval","ms":5,"tz":"UTC"}', '{"kind":"cron","expr":"* * * * *","ms":5}',
        {"kind": "interval", "ms": 10**16}, {"kind": ["cron"], "expr": "* * * * *"}, {}, None, 5,
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_anything_else_is_refused_as_an_invalid_schedule(stored):
    with pytest.raises(InvalidSchedule) as refusal:
        parse_spec(stored)
    assert len(str(refusal.value)) < 300


def test_a_bad_expression_makes_no_spec():
    with pytest.raises(InvalidSchedule, match="minute 60 is out of range"):
        CronSpec("60 * * * *")


def test_an_expression_of_a_thousand_escaped_characters_is_read():
    expr = "0 0 * * *".ljust(1000)
    stored = json.dumps({"kind": "cron", "expr": expr}).replace(" ", "\\u0020")
    stored = stored.replace(":\\u0020", ":").replace(",\\u0020", ",")
    assert parse_spec(stored) == CronSpec("0 0 * * *")
