"""Words are said rarely, and never at the price of an error."""

from __future__ import annotations

import logging

import pytest

from django_helisched.stores.orm import Herald
from django_helisched.stores.words import CANCEL, LOOK, SILENCE, understood


class Sent(list[str]):
    """A channel that keeps what it is given, or refuses it."""

    refusal: Exception | None = None

    def send(self, text: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        word = understood(text)
        assert word is not None
        self.append(word.kind)


class Time:
    at = 50.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def time() -> Time:
    return Time()


def test_the_first_word_is_said_at_once_and_the_next_ones_after_a_silence(sent: Sent, time: Time):
    herald = Herald(sent, now=time)
    for _ in range(3):
        herald.something_is_due()
    herald.something_is_canceled()
    assert sent == [LOOK, CANCEL]
    time.at += SILENCE / 2
    herald.something_is_due()
    assert sent == [LOOK, CANCEL]
    time.at += SILENCE
    herald.something_is_due()
    assert sent == [LOOK, CANCEL, LOOK]


def test_a_channel_that_fails_harms_nobody_and_is_said_once(sent: Sent, time: Time, caplog):
    herald = Herald(sent, now=time)
    sent.refusal = OSError("no room")
    with caplog.at_level(logging.INFO, "django_helisched"):
        for _ in range(3):
            herald.something_is_due()
    (record,) = caplog.records
    assert "no room" in record.getMessage()
    sent.refusal = None
    herald.something_is_due()  # at once: nobody has heard the ones before
    assert sent == [LOOK]


def test_without_a_channel_nothing_is_said():
    Herald(None).something_is_due()
