"""Limit keys: the same for the same values, another one for others, and always storable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_helisched.exceptions import InvalidOption
from django_helisched.jobs.limit import KEY_LENGTH, Limit, hold_of
from tests.pure.jobs.factories import NOON

PATH = "shop.jobs.send"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("limit", "arguments", "space", "expected"),
    [
        (Limit(2), {}, "acme", f"fn:{PATH}"),
        (Limit(2, key="space"), {}, "acme", "space:acme"),
        (Limit(2, key="space"), {}, "", "space:"),
        (Limit(2, key="smtp"), {}, "acme", "smtp"),
        (Limit(1, key="order:{order_id}"), {"order_id": 7}, "", "order:7"),
        (Limit(1, key="order:{order_id}"), {"order_id": "7"}, "", "order:7"),
        (Limit(1, key="{space}/{name}"), {"name": "é b"}, "acme", "acme/é b"),
        (Limit(1, key="{space}"), {"space": "mine"}, "acme", "mine"),
        (Limit(1, key="{{{name}}}"), {"name": None}, "", "{null}"),
        (Limit(1, key="{ids}"), {"ids": {"b": [1, 2.5], "a": True}}, "", '{"a":true,"b":[1,2.5]}'),
        (Limit(1, key="{name}"), {"name": "space:acme"}, "", "key:space:acme"),
        (Limit(1, key="{name}"), {"name": f"fn:{PATH}"}, "", f"key:fn:{PATH}"),
        (Limit(1, key="{name}"), {"name": "key:x"}, "", "key:key:x"),
    ],
)
def test_what_a_key_is(limit, arguments, space, expected):
    assert limit.key_for(PATH, arguments, space) == expected


@given(value=json_values)
def test_any_value_makes_a_key_that_every_database_stores(value):
    key = Limit(1, key="{value}").key_for(PATH, {"value": value}, "")
    assert 0 < len(key) <= KEY_LENGTH
    assert key == key.strip()
    assert not any(ord(character) < 32 for character in key)
    assert key == Limit(1, key="{value}").key_for(PATH, {"value": value}, "")


@given(one=st.text(), other=st.text())
def test_different_texts_have_different_keys(one, other):
    keys = {Limit(1, key="{value}").key_for(PATH, {"value": value}, "") for value in (one, other)}
    assert len(keys) == len({one, other})


@given(prefix=st.text(min_size=150), one=st.integers(), other=st.integers())
def test_a_long_key_is_cut_and_still_its_own(prefix, one, other):
    limit = Limit(1, key="{prefix}{number}")
    keys = [limit.key_for(PATH, {"prefix": prefix, "number": number}, "") for number in (one, other)]
    assert all(len(key) <= KEY_LENGTH for key in keys)
    assert (keys[0] == keys[1]) == (one == other)


def test_the_path_of_a_function_may_be_longer_than_a_key():
    long = "a." * 120 + "b"
    key = Limit(1).key_for(long, {}, "")
    assert len(key) <= KEY_LENGTH
    assert key != Limit(1).key_for(long + "c", {}, "")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"capacity": 0}, r"Limit\(0\): the capacity must be a whole number from 1 to"),
        ({"capacity": -1}, "the capacity must be a whole number"),
        ({"capacity": 2.0}, "the capacity must be a whole number"),
        ({"capacity": True}, "the capacity must be a whole number"),
        ({"capacity": "2"}, "the capacity must be a whole number"),
        ({"capacity": 2**31}, "the capacity must be a whole number"),
        ({"capacity": 1, "key": 7}, r"Limit\(key=7\): the key must be a string"),
        ({"capacity": 1, "key": " a"}, "must not begin or end with a blank"),
        ({"capacity": 1, "key": "a\nb"}, "must not begin or end with a blank or hold control characters"),
        ({"capacity": 1, "key": "a{"}, "Write a literal brace twice"),
        ({"capacity": 1, "key": "a}"}, "Write a literal brace twice"),
        ({"capacity": 1, "key": "{}"}, "braces take the name of an argument and nothing else"),
        ({"capacity": 1, "key": "{0}"}, "braces take the name of an argument"),
        ({"capacity": 1, "key": "{a.b}"}, "braces take the name of an argument"),
        ({"capacity": 1, "key": "{a[0]}"}, "braces take the name of an argument"),
        ({"capacity": 1, "key": "{a!r}"}, "braces take the name of an argument"),
        ({"capacity": 1, "key": "{a:>9}"}, "braces take the name of an argument"),
    ],
)
def test_what_is_wrong_is_said_at_declaration(given, sentence):
    with pytest.raises(InvalidOption, match=sentence):
        Limit(**given)


def test_an_unknown_argument_is_named_with_those_that_there_are():
    with pytest.raises(InvalidOption, match=r'no argument "order" \(it takes: order_id, note\)'):
        Limit(1, key="order:{order}").check_names(PATH, ["order_id", "note"])
    Limit(1, key="{space}:{note}").check_names(PATH, ["order_id", "note"])


@pytest.mark.parametrize(("seconds", "hold"), [(-1, "limit"), (0, "limit"), (1, "later")])
def test_who_is_due_waits_for_a_slot_and_who_is_not_for_its_time(seconds, hold):
    from datetime import timedelta

    assert hold_of("k", NOON + timedelta(seconds=seconds), NOON) == hold
    assert hold_of("", NOON + timedelta(seconds=seconds), NOON) == ""
