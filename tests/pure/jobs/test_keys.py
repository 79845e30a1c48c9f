from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from django_helisched.jobs.keys import digest_of

texts = st.text(st.characters(exclude_categories=["Cs"]))
words = texts.filter(bool)


def test_a_digest_is_64_hexadecimal_digits_and_the_same_on_every_machine():
    assert digest_of("", "receipt:7") == "fc4aabbd90b87d115054f3e5cf9bae11aad0649577a8c9bac9dcfe66b50c011e"


@given(texts, texts, texts, texts)
def test_different_pairs_have_different_digests(space, key, other_space, other_key):
    assume((space, key) != (other_space, other_key))
    assert digest_of(space, key) != digest_of(other_space, other_key)


@given(words, words)
def test_a_space_and_a_key_cannot_be_cut_otherwise(space, key):
    assert len({digest_of(space, key), digest_of("", space + key), digest_of(space + key, "")}) == 3
