"""A call that is accepted without binding it would also have bound."""

from __future__ import annotations

import inspect

from hypothesis import given
from hypothesis import strategies as st

from django_helisched.functions.shape import Shape


def plain(a, b, c=3): ...
def bare(): ...
def starred(a, *rest, b=1, **more): ...
def keywords(a, *, b): ...
def positions(a, b=2, /, c=3): ...


FUNCTIONS = [plain, bare, starred, keywords, positions]
NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(st.sampled_from(FUNCTIONS), st.lists(st.integers(), max_size=4), st.dictionaries(NAMES, st.integers()))
def test_what_it_takes_binds(function, args, kwargs):
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
        binds = True
    except TypeError:
        binds = False
    takes = Shape(signature).takes(args, kwargs)
    assert binds or not takes
    if function in {plain, bare}:
        assert takes is binds


def test_names_are_those_that_a_position_fills():
    assert Shape(inspect.signature(positions)).names == ("a", "b", "c")
    assert Shape(inspect.signature(starred)).names == ("a",)
    assert Shape(inspect.signature(keywords)).names == ("a",)
