"""A word is answered twice, a flood is answered rarely, and what is lost is said."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from django_helisched.driver.events import What
from django_helisched.driver.waking import listening
from django_helisched.stores.clock import elapsed
from django_helisched.stores.orm import Herald
from django_helisched.stores.words import CANCEL, LOOK, SILENCE, TEST, spelled, understood
from tests.driver.test_heartbeat import wait_for
from tests.waking.conftest import FakeEar, Listener, a_pace

SOMEBODY = spelled(LOOK, speaker="abc.1")


def test_a_word_of_another_process_is_answered_at_once_and_when_its_silence_is_over(ear: FakeEar, listener: Listener):
    with listener.listen(ear):
        listener.settled()
        ear.words.put(SOMEBODY)
        wait_for(lambda: listener.times() == 2)
        ear.words.put(spelled(CANCEL, speaker="abc.1"))
        wait_for(lambda: listener.times("cancel") == 2)
        assert listener.times() == 2


def test_what_is_stored_in_the_silence_after_a_word_is_seen_by_the_second_look(ear: FakeEar):
    stored: list[str] = []
    looks: list[list[str]] = []
    sent: list[str] = []

    class ToTheEar:
        def send(self, text: str) -> None:
            sent.append(text)
            ear.words.put(SOMEBODY)

    herald = Herald(ToTheEar(), now=lambda: 100.0)  # its silence lasts for the whole test

    def look() -> None:
        looks.append(list(stored))
        if stored == ["first"]:
            stored.append("second")
            herald.something_is_due()

    listener = Listener(a_pace, look)
    with listener.listen(ear):
        listener.settled()
        looks.clear()
        stored.append("first")
        herald.something_is_due()
        wait_for(lambda: looks and looks[-1] == ["first", "second"])
    assert len(sent) == 1
    assert listening.ECHO > SILENCE


def test_a_flood_makes_no_more_than_one_look_in_the_time_of_a_silence(ear: FakeEar, listener: Listener):
    with listener.listen(ear):
        listener.settled()
        begun = elapsed()
        for _ in range(300):
            ear.words.put(SOMEBODY)
        wait_for(lambda: listener.times() >= 20)
        looks = listener.times()
        assert elapsed() - begun >= (looks - 2) * listening.ECHO


@pytest.mark.parametrize(
    "text", ["", "look", "look ", "LOOK ab", "look ab cd", "look zz", "drop 1", "look 1\n", "\x00"]
)
def test_whatever_is_no_word_is_heard_by_nobody(ear: FakeEar, listener: Listener, text: str):
    assert understood(text) is None
    with listener.listen(ear):
        listener.settled()
        ear.words.put(text)
        ear.words.put(spelled(LOOK))  # its own: it knows that already
        ear.words.put(spelled(TEST, speaker="abc.1"))
        ear.words.put(spelled(CANCEL, speaker="abc.1"))
        wait_for(lambda: listener.times("cancel") == 2)
        assert listener.times() == 0


def test_after_each_connect_it_looks_once_since_nobody_told_it_meanwhile(ear: FakeEar, listener: Listener):
    with listener.listen(ear):
        wait_for(lambda: listener.pace.is_told)
        assert (listener.times(), listener.times("cancel")) == (1, 1)
        ear.words.put(OperationalError("terminated"))
        wait_for(lambda: "close" in ear.log)
        wait_for(lambda: listener.times() == 3)  # one to poll from now on, one when it hears again
        assert listener.times("cancel") == 2
        wait_for(lambda: listener.pace.is_told)
    (lost,) = listener.events.of(What.WAKEUP_LOST)
    assert lost.text == "FAKE is not heard (OperationalError: terminated). Polling until it is."
    assert [event.text for event in listener.events.of(What.WAKEUP_READY)] == ["Wake-up: FAKE."] * 2


def test_while_nothing_is_heard_it_polls_and_says_so_once(ear: FakeEar, listener: Listener):
    ear.refusals += [OperationalError("refused"), OperationalError("refused")]
    with listener.listen(ear):
        wait_for(lambda: ear.log.count("open") == 2)
        assert not listener.pace.is_told
        wait_for(lambda: listener.pace.is_told)
    assert len(listener.events.of(What.WAKEUP_LOST)) == 1


def test_what_swallows_every_word_is_found_out_and_said_in_one_sentence(ear: FakeEar, listener: Listener):
    ear.swallows = True
    with listener.listen(ear, test_seconds=0.05):
        wait_for(lambda: listener.events.of(What.WAKEUP_LOST))
        assert not listener.pace.is_told
        wait_for(lambda: "close" in ear.log)
    (lost,) = listener.events
    assert lost.text.startswith("What is said by FAKE does not arrive, as behind a pooler in transaction mode. Polling")


def test_a_busy_neighbour_does_not_spoil_the_test(ear: FakeEar, listener: Listener):
    for _ in range(5):
        ear.words.put(SOMEBODY)
    with listener.listen(ear):
        wait_for(lambda: listener.pace.is_told)


def test_without_an_ear_it_says_that_it_polls(listener: Listener):
    with listener.listen(None):  # type: ignore[arg-type]
        pass
    assert [event.text for event in listener.events] == ["Wake-up: polling."]
    assert not listener.pace.is_told


def test_stopping_ends_a_wait_at_once(ear: FakeEar, listener: Listener):
    with listener.listen(ear):
        listener.settled()
    assert ear.log == ["open", "close"]


def test_work_is_claimed_over_the_line_by_which_it_was_heard_of(ear: FakeEar, listener: Listener):
    ear.lends = listener.can_claim = True
    with listener.listen(ear):
        listener.settled()
        ear.words.put(SOMEBODY)
        wait_for(lambda: listener.times("claim") == 2)
        assert listener.times() == 0
        listener.can_claim = False
        ear.words.put(SOMEBODY)
        wait_for(lambda: listener.times() == 2)
        ear.words.put(spelled(CANCEL, speaker="abc.1"))
        wait_for(lambda: listener.times("cancel") == 2)
    assert listener.times("claim") == 4


def test_a_line_that_may_be_shared_is_not_claimed_over(ear: FakeEar, listener: Listener):
    ear.lends = ear.swallows = True
    with listener.listen(ear, test_seconds=20.0):
        wait_for(lambda: listener.times() == 1)
        ear.words.put(SOMEBODY)
        wait_for(lambda: listener.times() == 3)
        assert not listener.pace.is_told
    assert "lend" not in ear.log
