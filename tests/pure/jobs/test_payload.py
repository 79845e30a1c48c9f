from __future__ import annotations

import json
import math
import sys
from collections import OrderedDict
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_helisched.jobs.payload import MAX_DEPTH, NotJson, canonical, check_text, clean_text, dumps, is_plain

storable = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(storable),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(storable), inner),
    max_leaves=20,
)


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    A = "a"


@given(values)
def test_what_is_canonical_comes_back_exactly_with_its_order(value):
    assert canonical(value) == value
    assert repr(json.loads(dumps(canonical(value)))) == repr(value)


@given(values)
def test_what_is_plain_is_canonical(value):
    assert not is_plain(value) or repr(canonical(value)) == repr(value)


@pytest.mark.parametrize("value", ["a\x00", "\ud800", "é", 2**63, 1.5, Number.ONE, Word.A, [], (), {}])
def test_what_would_change_or_be_refused_is_not_plain(value):
    assert not is_plain(value)


@given(values)
def test_to_be_canonical_twice_is_to_be_canonical(value):
    once = canonical(value)
    assert repr(canonical(once)) == repr(once)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_type_and_its_last_bit(number):
    back = json.loads(dumps(canonical(number)))
    assert type(back) is float
    assert (back, math.copysign(1, back)) == (number, math.copysign(1, number))


def test_tuples_become_lists_and_mappings_become_dicts():
    assert canonical((1, (2,), MappingProxyType({"a": (3,)}))) == [1, [2], {"a": [3]}]
    assert type(canonical(OrderedDict(a=1))) is dict


def test_subclasses_become_what_they_will_be_read_back_as():
    result = canonical([Number.ONE, Word.A, True])
    assert [type(item) for item in result] == [int, str, bool]
    assert result == [1, "a", True]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"x": {1}}, "args['x'] is a set, which cannot be stored as JSON"),
        ([1, [date(2026, 1, 1)]], "args[1][0] is a date, which cannot be stored as JSON"),
        (Decimal(1), "args is a Decimal, which cannot be stored as JSON"),
        ([object()], "args[0] is an object, which cannot be stored as JSON"),
        ([b"x"], "args[0] is a bytes, which cannot be stored as JSON"),
        ({"a": {1: "x"}}, "args['a'] has the key 1, which is not a string; JSON would change it"),
        ({None: 1}, "args has the key None, which is not a string; JSON would change it"),
        ([math.nan], "args[0] is nan, which JSON cannot hold"),
        ([-math.inf], "args[0] is -inf, which JSON cannot hold"),
        ({"k": "a\x00b"}, "args['k'] contains a NUL character, which databases cannot store"),
        ({"a\x00": 1}, "args contains a NUL character, which databases cannot store"),
        (["\ud800"], "args[0] contains a lone surrogate, which is not valid text"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(value, sentence):
    with pytest.raises(NotJson) as caught:
        canonical(value, "args")
    assert str(caught.value) == sentence


def test_a_value_without_a_place_is_named_the_value():
    with pytest.raises(NotJson, match=r"^the value is a set,"):
        canonical(set())


def test_integers_are_refused_before_python_would_refuse_to_read_them():
    assert sys.get_int_max_str_digits() == 4300
    longest = 10**4299
    assert json.loads(dumps(canonical(longest))) == longest
    for too_long in (10**4300, -(10**4300), 10**5000, 1 << 10**6):
        with pytest.raises(NotJson, match="4300 digits"):
            canonical(too_long)


def test_every_depth_that_is_accepted_can_be_read_back():
    deepest: object = 1
    for _ in range(MAX_DEPTH):
        deepest = [deepest]
    assert json.loads(dumps(canonical(deepest))) == deepest
    with pytest.raises(NotJson, match=f"deeper than {MAX_DEPTH} levels"):
        canonical([deepest])


def test_a_value_that_contains_itself_is_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(NotJson, match="deeper"):
        canonical(endless)


@given(st.text())
def test_any_text_can_be_cleaned_so_that_it_can_be_stored(text):
    clean = clean_text(text)
    assert check_text(clean, "text") == clean


@given(st.text(storable))
def test_text_that_can_be_stored_is_left_as_it_is(text):
    assert clean_text(text) == check_text(text, "text") == text


def test_what_cannot_be_stored_is_shown_as_an_escape():
    assert clean_text("a\x00b\udc80c") == "a\\x00b\\udc80c"
